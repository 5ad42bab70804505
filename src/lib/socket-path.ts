/** As long as the kernel takes one, bytes. */
export const longestSocketPath = 107;

/** Whether a unix socket can have this path. */
export function isSocketPath(path: string): boolean {
  return path.startsWith('/') && Buffer.byteLength(path) <= longestSocketPath;
}

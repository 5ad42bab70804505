import { chmodSync, lstatSync, unlinkSync } from 'node:fs';
import { connect } from 'node:net';

const scheme = 'unix:';

/** `unix:/run/sidelight/grpc.sock` → the path. `undefined`: the address is of another kind. */
export function socketPath(address: string): string | undefined {
  return address.startsWith(scheme) ? address.slice(scheme.length) : undefined;
}

/** Takes away the socket that an earlier process left behind; one that somebody listens on stays, and so does a file. */
export async function removeLeftSocket(path: string): Promise<void> {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSocket() === true && !(await answers(path))) unlinkSync(path);
}

/** Who may reach its folder may use it: the proxy's container has another user. */
export function openToAll(path: string): void {
  chmodSync(path, 0o666);
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

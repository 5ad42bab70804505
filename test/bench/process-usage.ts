import { readFileSync } from 'node:fs';

/** Linux counts a process's CPU in ticks of 10 ms. */
const msPerTick = 10;

/** CPU that a process used so far, user and system, ms. */
export function cpuMs(pid: number): number {
  // The command's name, in parentheses, may hold spaces: what counts comes after it.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) * msPerTick;
}

/** Memory that a process holds now, MiB. */
export function rssMiB(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

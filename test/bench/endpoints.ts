import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { table } from '../../src/cli/demo/table.ts';
import { dieWithUs } from '../../src/lab/cleanup.ts';
import type { BlockCost, MeshOptions, Part } from './mesh.ts';

/*
 * What a request costs with many endpoints that come and go, beside a few that do not: a process for each, blocks of all
 * in turn, and the quieter ones of each. Once as profile `full` has it, from the bytes that another process sends by gRPC
 * to the tags and the metrics; and once the recorder alone, which shows a change there much sooner.
 */
const warmUpBlocks = 8;
const blocks = 16;
const parts: readonly Part[] = ['full', 'recorder'];
const meshes = [
  { name: '10 endpoints, 1 cluster', clusters: 1, perCluster: 10, churn: 0 },
  { name: '10,000 endpoints, 1,000 clusters, 1 % churn a second', clusters: 1000, perCluster: 10, churn: 0.01 },
];

interface Measured {
  process: ChildProcess;
  costs: BlockCost[];
}

function start(options: MeshOptions): Measured {
  const file = fileURLToPath(new URL('mesh.ts', import.meta.url));
  const child = fork(file, [JSON.stringify(options)], { execArgv: ['--expose-gc'] });
  dieWithUs(child);
  return { process: child, costs: [] };
}

async function measure({ process: child, costs }: Measured): Promise<void> {
  child.send('block');
  const [cost] = (await once(child, 'message')) as [BlockCost];
  costs.push(cost);
}

/** The lower quartile: what else runs on the machine makes a block dearer, never cheaper. */
function quiet({ costs }: Measured): number {
  const sorted = costs.slice(warmUpBlocks).toSorted((a, b) => a.us - b.us);
  return sorted[Math.floor(sorted.length / 4)]?.us ?? Number.NaN;
}

const measured = parts.map((part) => meshes.map(({ name: _name, ...mesh }) => start({ ...mesh, part })));
for (let block = 0; block < warmUpBlocks + blocks; block += 1) {
  // Each goes first half of the time.
  for (const pair of measured) for (const one of block % 2 === 0 ? pair : pair.toReversed()) await measure(one);
}
for (const { process: child } of measured.flat()) child.disconnect();

const rows = meshes.map(({ name }, mesh) => [
  name,
  ...measured.map((pair) => quiet(pair[mesh] as Measured).toFixed(1)),
]);
rows.push(['ratio', ...measured.map(([few, many]) => (quiet(many as Measured) / quiet(few as Measured)).toFixed(2))]);
for (const line of table(['CPU, µs per request', 'profile full (budget 1.1)', 'the recorder alone'], rows))
  console.log(line);
const heaps = measured.flatMap((pair) => pair[1]?.costs ?? []).map(({ heapMiB }) => heapMiB.toFixed(0));
const looks = [warmUpBlocks, warmUpBlocks + blocks / 2, warmUpBlocks + blocks - 1];
console.log(`heap with many endpoints after block ${looks.join(', ')}: ${looks.map((at) => heaps[at]).join(', ')} MiB`);

import { readFile } from 'node:fs/promises';
import { type FactKind, factKinds, factPaths, type ProxyFacts, type Read } from '../../doctor/facts.ts';
import { factsOf, type Texts } from '../../doctor/read/facts.ts';
import { fetchReason, getText } from '../../lib/http-text.ts';
import type { ProxyFiles } from './options.ts';

/** One answer is read so far and no further. The config of a mesh of 5,000 services is some 60 MB. */
const maxAnswerBytes = 256 << 20;

/** All of standard input; called once at most. */
export type ReadInput = () => Promise<string>;

/** Asks an admin interface for all that is looked at: GET alone. Never rejects. */
export async function askProxy(url: URL, timeoutMs: number): Promise<ProxyFacts> {
  const base = url.href.replace(/\/$/, '');
  const answers = await Promise.all(
    factKinds.map(async (kind) => [kind, await ask(`${base}${factPaths[kind]}`, timeoutMs)] as const),
  );
  return factsOf(base, Object.fromEntries(answers));
}

async function ask(address: string, timeoutMs: number): Promise<Read> {
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    const answer = await getText(address, { signal, maxBytes: maxAnswerBytes });
    if (answer.ok) return { text: answer.text };
    const found = answer.found === undefined ? '' : `found ${answer.found}, `;
    return { problem: `${address}: ${found}expected ${answer.expected}` };
  } catch (error) {
    return {
      problem: `${address}: ${signal.aborted ? `no whole answer within ${timeoutMs} ms` : reasonText(fetchReason(error))}`,
    };
  }
}

/** Reads the files of one proxy. Never rejects. */
export async function readProxy(files: ProxyFiles, input: ReadInput): Promise<ProxyFacts> {
  const texts: Texts = {};
  for (const kind of factKinds) {
    const file = files[kind];
    if (file !== undefined) texts[kind] = await readText(file, input);
  }
  return factsOf(nameOf(files), texts);
}

/** `-` is standard input. Never rejects. */
export async function readText(file: string, input: ReadInput): Promise<Read> {
  try {
    return { text: file === '-' ? await input() : await readFile(file, 'utf8') };
  } catch (error) {
    return { problem: `${file}: ${reasonText(error)}` };
  }
}

function nameOf(files: ProxyFiles): string {
  const [file = ''] = factKinds.flatMap((kind: FactKind) => files[kind] ?? []);
  return file === '-' ? 'standard input' : file;
}

/** Without the system's call and path, which the system says after a comma: the path is told already. */
function reasonText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return 'syscall' in error ? error.message.replace(/, [a-z]+( '.*')?$/s, '') : error.message;
}

import { readFileSync } from 'node:fs';
import type { Document } from 'yaml';
import { envoyFilters } from '../../attach/istio/envoy-filter.ts';
import { attachToConfig } from '../../attach/plain/attach-to-config.ts';
import { render } from '../../attach/render.ts';
import type { Surroundings } from '../serve/serve.ts';
import type { AttachFlags } from './flags.ts';
import { type AttachOptions, parseAttach } from './options.ts';

/** As of the other commands. */
export const wrongArguments = 2;

/** Writes the config to stdout. The exit code: 0, or 2 with every mistake on stderr. */
export function attach(flags: AttachFlags, { out, err }: Pick<Surroundings, 'out' | 'err'>): number {
  const parsed = parseAttach(flags);
  const made = parsed.ok ? documents(parsed.options) : parsed;
  if (!made.ok) {
    err(made.problems.map((problem) => `sidelight attach: ${problem}`).join('\n'));
    return wrongArguments;
  }
  out(render(made.documents).trimEnd());
  return 0;
}

type Made = { ok: true; documents: Document[] } | { ok: false; problems: string[] };

function documents(options: AttachOptions): Made {
  if (options.kind === 'istio') return { ok: true, documents: envoyFilters(options.plans) };
  const { configFile, plan, listeners } = options;
  let text: string;
  try {
    text = readFileSync(configFile === '-' ? 0 : configFile, 'utf8');
  } catch (error) {
    return { ok: false, problems: [`--config ${configFile}: cannot be read: ${(error as Error).message}`] };
  }
  const attached = attachToConfig(text, plan, listeners);
  if (attached.ok) return { ok: true, documents: [attached.document] };
  return { ok: false, problems: attached.problems.map((problem) => `${configFile}: ${problem}`) };
}

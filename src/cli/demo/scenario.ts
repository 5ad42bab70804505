import type { ApiExchange } from './sidelight-process.ts';
import type { Stage } from './stage.ts';

/** Something that must hold, or the demo fails. */
export interface Check {
  what: string;
  met: boolean;
}

/** What the three saw of one scenario, in words, and whether it came out as it must. */
export interface Finding {
  client: string;
  envoy: string;
  sidelight: string[];
  /** The same in a few words, for the table. */
  brief: { client: string; sidelight: string };
  /** One exchange that shows it; absent where none is special. */
  trace: ApiExchange | undefined;
  checks: Check[];
}

export interface Scenario {
  id: string;
  title: string;
  play(stage: Stage): Promise<Finding>;
}

export function check(what: string, met: boolean): Check {
  return { what, met };
}

/** `46.5 %`. */
export function percent(part: number, whole: number): string {
  return whole === 0 ? '–' : `${((100 * part) / whole).toFixed(1)} %`;
}

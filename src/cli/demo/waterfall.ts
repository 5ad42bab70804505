/** One bar of a waterfall. Times are ms since the exchange's start. */
export interface Bar {
  label: string;
  fromMs: number;
  toMs: number;
  failed: boolean;
  note: string;
}

const width = 44;
const labelWidth = 24;

/** Bars on one time axis, for a terminal. `colour` off prints plain text; a failed bar is drawn otherwise, not only in red. */
export function waterfall(bars: readonly Bar[], colour: boolean): string[] {
  const endMs = Math.max(1, ...bars.map((bar) => bar.toMs));
  return bars.map((bar) => {
    const from = Math.min(width - 1, Math.floor((bar.fromMs / endMs) * width));
    const length = Math.max(1, Math.round(((bar.toMs - bar.fromMs) / endMs) * width));
    const body = (bar.failed ? '░' : '█').repeat(Math.min(length, width - from));
    const line = `${' '.repeat(from)}${paint(body, bar.failed, colour)}${' '.repeat(width - from - Math.min(length, width - from))}`;
    return `${bar.label.padEnd(labelWidth)} │${line}│ ${duration(bar.toMs - bar.fromMs)}  ${bar.note}`;
  });
}

function paint(text: string, failed: boolean, colour: boolean): string {
  return colour ? `\u001b[${failed ? 31 : 32}m${text}\u001b[0m` : text;
}

/** `950 ms`, `1.20 s`: right-aligned to 8 columns. */
export function duration(ms: number): string {
  const text = ms < 1000 ? `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms` : `${(ms / 1000).toFixed(2)} s`;
  return text.padStart(8);
}

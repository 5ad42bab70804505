import type { Finding, Scenario } from './scenario.ts';
import type { ApiExchange } from './sidelight-process.ts';
import { table } from './table.ts';
import { type Bar, waterfall } from './waterfall.ts';

export type Say = (line: string) => void;

/** Prints how one scenario came out. */
export function tell(finding: Finding, say: Say, colour: boolean): void {
  say(`    the client   ${finding.client}`);
  say(`    Envoy        ${finding.envoy}`);
  finding.sidelight.forEach((line, index) => say(`    ${index === 0 ? 'Sidelight   ' : '            '} ${line}`));
  if (finding.trace !== undefined) {
    say(`    one of them  ${finding.trace.traceId === undefined ? '' : `trace ${finding.trace.traceId}`}`.trimEnd());
    for (const line of waterfall(bars(finding.trace), colour)) say(`      ${line}`);
  }
  for (const { what, met } of finding.checks) if (!met) say(`    NOT MET      ${what}`);
}

/** Prints all of them in one table. Returns whether every check was met. */
export function summarize(played: readonly { scenario: Scenario; finding: Finding }[], say: Say): boolean {
  const rows = played.map(({ scenario, finding }) => {
    const met = finding.checks.filter((check) => check.met).length;
    return [scenario.id, finding.brief.client, finding.brief.sidelight, `${met} of ${finding.checks.length}`];
  });
  say('');
  for (const line of table(['', 'the client saw', 'Sidelight says', 'checks met'], rows)) say(line);
  return played.every(({ finding }) => finding.checks.every((check) => check.met));
}

function bars(exchange: ApiExchange): Bar[] {
  const whole: Bar = {
    label: `GET ${exchange.path}`,
    fromMs: 0,
    toMs: exchange.durationMs,
    failed: exchange.code === undefined || exchange.code >= 500,
    note: `${exchange.code ?? 'nothing'} to the client: ${exchange.outcome}${exchange.pin === 'stale' ? ', over a stale pin' : ''}`,
  };
  return [
    whole,
    ...exchange.attempts.map((attempt) => ({
      label: `  ${attempt.number}  ${attempt.endpoint}`,
      fromMs: Math.max(0, attempt.offsetMs),
      toMs: attempt.offsetMs + attempt.durationMs,
      failed: attempt.result === 'failed',
      note: attempt.cause ?? connectionNote(attempt),
    })),
  ];
}

function connectionNote(attempt: ApiExchange['attempts'][number]): string {
  const age = attempt.connectionAgeMs === undefined ? '' : `, ${(attempt.connectionAgeMs / 1000).toFixed(1)} s old`;
  return `${attempt.code ?? ''} over connection ${attempt.connectionId ?? '?'}${age}`;
}

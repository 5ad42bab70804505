import type { SelfMetrics } from '../../emit/metrics/self-metrics.ts';
import type { IngressCounters } from '../../ingress/counters.ts';
import type { Logger } from '../../lib/logger.ts';

/** What the gRPC edge tells of itself, as self-metrics and, where somebody should act, as log lines. */
export function ingressCounters(self: SelfMetrics, logger: Logger): IngressCounters {
  return {
    streamOpened: (kind) => self.streamOpened(kind),
    streamClosed: (kind) => self.streamClosed(kind),
    message: (kind) => self.message(kind),
    decodeError(kind, error) {
      self.decodeError(kind);
      logger.warn('decode.failed', { stream: kind, problem: error.text });
    },
    refused(kind, reason, count) {
      self.refused(reason, count);
      logger.warn('input.refused', { stream: kind, reason, count });
    },
    failOpen: () => self.failOpen('no_facts'),
    answered: (durationMs) => self.tagDuration(durationMs),
    internalError(kind, error) {
      if (kind === 'ext_proc') self.failOpen('internal');
      logger.error('internal', { stream: kind, error });
    },
  };
}

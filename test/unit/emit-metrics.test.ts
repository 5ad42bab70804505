import { describe, expect, it } from 'vitest';
import type { JudgedExchange } from '../../src/model/verdict.ts';
import { queryOf, readDoc } from '../support/doc-tables.ts';
import { clearedPin, pinLife, scraped, testEmit } from '../support/emit.ts';
import { reporter } from '../support/entries.ts';
import { attempt, exchange, failedBy, ip, judged, local, masked, ok, pin, tcpConnection } from '../support/judged.ts';
import { samplesOf, total } from '../support/prometheus-text.ts';
import { evaluateRatio } from '../support/promql.ts';

const page = readDoc('reference/metrics.md');

function ratesOf(exchanges: readonly JudgedExchange[]): Record<string, number> {
  const emit = testEmit();
  for (const one of exchanges) emit.exchange(one);
  const families = scraped(emit);
  const names = ['effective', 'first-try', 'masked', 'actual', 'amplification', 'aborted'];
  return Object.fromEntries(names.map((name) => [name, evaluateRatio(queryOf(page, name), families)]));
}

const times = (count: number, one: JudgedExchange): JudgedExchange[] => Array.from({ length: count }, () => one);

describe('the rates, by the queries of the docs', () => {
  it('say of one dead address behind two retries what was measured: B1', () => {
    const rates = ratesOf([...times(40, judged()), ...times(46, masked())]);
    expect(rates['effective']).toBe(1);
    expect(rates['first-try']).toBeCloseTo(40 / 86, 10);
    expect(((rates['first-try'] ?? 0) * 100).toFixed(1)).toBe('46.5');
    expect(((rates['actual'] ?? 0) * 100).toFixed(1)).toBe('65.2');
    expect(rates['masked']).toBeCloseTo((rates['effective'] ?? 0) - (rates['first-try'] ?? 0), 10);
    expect(rates['amplification']).toBeCloseTo(132 / 86, 10);
    expect(rates['aborted']).toBe(0);
  });

  it('say without retries that what failed failed: B2', () => {
    const failed = judged({
      exchange: { code: 503 },
      verdict: { outcome: 'failed', attempts: [failedBy('connect_failure')], cause: 'connect_failure' },
    });
    const rates = ratesOf([...times(40, judged()), ...times(46, failed)]);
    expect(rates).toMatchObject({
      effective: 40 / 86,
      'first-try': 40 / 86,
      masked: 0,
      actual: 40 / 86,
      amplification: 1,
    });
  });

  it('leave out aborts, unknowns, local client errors and hedges, and count local successes and server errors', () => {
    const aborted = judged({
      verdict: { outcome: 'aborted', attempts: [{ result: 'client_cancelled', cause: undefined }] },
    });
    const unknown = judged({
      exchange: { attempts: [] },
      verdict: { outcome: 'unknown', attempts: [], pin: undefined },
    });
    const hedged = masked({ verdict: { hedged: true } });
    const rates = ratesOf([
      judged(),
      masked(),
      aborted,
      unknown,
      hedged,
      local('client_error', 401),
      local('success', 301),
      local('server_error', 503),
    ]);
    // Counted: ok, masked, local success, local server error.
    expect(rates).toMatchObject({ effective: 3 / 4, 'first-try': 2 / 4, masked: 1 / 4, actual: 2 / 3, aborted: 1 / 8 });
  });
});

describe('an exchange', () => {
  it('counts its attempts by endpoint, result and cause, and what masking cost', () => {
    const emit = testEmit();
    emit.exchange(masked());
    const families = scraped(emit);
    const attempts = samplesOf(families, 'sidelight_attempts_total').map(({ labels, value }) => [
      labels['sidelight_endpoint'],
      labels['sidelight_result'],
      labels['sidelight_cause'],
      value,
    ]);
    expect(attempts).toEqual([
      ['127.0.0.12:8080', 'failed', 'connect_failure', 1],
      ['127.0.0.11:8080', 'ok', undefined, 1],
    ]);
    expect(total(families, 'sidelight_masked_latency_seconds_sum', { sidelight_cause: 'connect_failure' })).toBe(1.005);
    expect(total(families, 'sidelight_request_duration_seconds_sum', { sidelight_outcome: 'masked' })).toBe(1.025);
    expect(total(families, 'sidelight_request_duration_seconds_bucket', { le: '1' })).toBe(0);
    expect(total(families, 'sidelight_request_duration_seconds_bucket', { le: '2.5' })).toBe(1);
    expect(total(families, 'sidelight_upstream_connection_age_seconds_sum', { sidelight_layer: 'http' })).toBe(5);
    expect(total(families, 'sidelight_pinned_requests_total', { sidelight_pin: 'current' })).toBe(1);
  });

  it('starts every outcome and pin of its cluster and reporter at 0', () => {
    const emit = testEmit();
    emit.exchange(judged());
    const families = scraped(emit);
    const requests = samplesOf(families, 'sidelight_requests_total').map(
      ({ labels, value }) => `${labels['sidelight_outcome']} ${labels['sidelight_local_result'] ?? ''} ${value}`,
    );
    expect(requests.toSorted()).toEqual([
      'aborted  0',
      'exhausted  0',
      'failed  0',
      'local client_error 0',
      'local server_error 0',
      'local success 0',
      'masked  0',
      'ok  1',
      'unknown  0',
    ]);
    expect(samplesOf(families, 'sidelight_pinned_requests_total')).toHaveLength(6);
  });

  it('over an expected pin is marked so, from the first; over a listed endpoint never', () => {
    const emit = testEmit({ isPinExpected: (cluster) => cluster === 'app' });
    const stale = { pin: pin({ pin: 'stale' }) };
    emit.exchange(judged());
    emit.exchange(judged({ verdict: stale }));
    emit.exchange(judged({ exchange: { cluster: 'b', attempts: [attempt({ cluster: 'b' })] }, verdict: stale }));
    const counted = samplesOf(scraped(emit), 'sidelight_pinned_requests_total').map(
      ({ labels, value }) =>
        `${labels['sidelight_cluster']} ${labels['sidelight_pin']} ${labels['sidelight_expected'] ?? ''} ${value}`,
    );
    expect(counted.toSorted()).toEqual([
      'app current  1',
      'app draining true 0',
      'app stale true 1',
      'app stale_view true 0',
      'app unknown  0',
      'app unlisted  0',
      'b current  0',
      'b draining  0',
      'b stale  1',
      'b stale_view  0',
      'b unknown  0',
      'b unlisted  0',
    ]);
  });

  it('leaves out labels that are not known', () => {
    const emit = testEmit();
    const nameless = { ...reporter, workload: '', namespace: '' };
    emit.exchange({
      ...local('client_error', 404),
      exchange: exchange({ reporter: nameless, cluster: undefined, attempts: [] }),
    });
    const [sample] = samplesOf(scraped(emit), 'sidelight_requests_total', { sidelight_outcome: 'ok' });
    expect(sample?.labels).toEqual({ sidelight_reporter_kind: 'envoy', sidelight_outcome: 'ok' });
  });

  it('counts an attempt where the attempt went, after a redirect to another cluster', () => {
    const emit = testEmit();
    const attempts = [attempt({ code: 302 }), attempt({ number: 2, cluster: 'other-app', peer: ip('127.0.0.13:80') })];
    emit.exchange(judged({ exchange: { attempts, delivered: 1, redirects: 1 }, verdict: { attempts: [ok, ok] } }));
    const families = scraped(emit);
    expect(total(families, 'sidelight_attempts_total', { sidelight_cluster: 'other-app' })).toBe(1);
    expect(total(families, 'sidelight_attempts_total', { sidelight_cluster: 'app' })).toBe(1);
    expect(total(families, 'sidelight_requests_total', { sidelight_cluster: 'other-app' })).toBe(0);
  });

  it('that is not whole is counted by its reason', () => {
    const emit = testEmit();
    emit.exchange(judged({ exchange: { incomplete: 'stream_ended' }, verdict: { outcome: 'unknown' } }));
    const families = scraped(emit);
    expect(total(families, 'sidelight_self_exchanges_incomplete_total', { sidelight_reason: 'stream_ended' })).toBe(1);
  });
});

describe('the other facts', () => {
  it('of a TCP connection count it by result and cause at its endpoint', () => {
    const emit = testEmit();
    emit.tcpEnd(tcpConnection(), ok);
    emit.tcpEnd(tcpConnection({ flags: ['UF'], durationMs: 250 }), failedBy('connect_timeout'));
    emit.tcpEnd(tcpConnection({ peer: undefined }), failedBy('unknown'));
    const families = scraped(emit);
    const endpoint = { sidelight_endpoint: '127.0.0.11:9000' };
    expect(total(families, 'sidelight_tcp_connections_total', { ...endpoint, sidelight_result: 'ok' })).toBe(1);
    expect(
      total(families, 'sidelight_tcp_connections_total', { ...endpoint, sidelight_cause: 'connect_timeout' }),
    ).toBe(1);
    expect(total(families, 'sidelight_tcp_connections_total')).toBe(3);
    // A connection that was never made has no age.
    expect(total(families, 'sidelight_upstream_connection_age_seconds_count', { sidelight_layer: 'tcp' })).toBe(1);
  });

  it('of a tagged response are retried or not, never masked', () => {
    const emit = testEmit();
    const facts = {
      profile: 'tag' as const,
      reporter,
      key: 'k',
      cluster: 'app',
      route: undefined,
      upstream: ip('127.0.0.11:8080'),
      attemptCount: 2,
      code: 200,
      codeDetails: undefined,
      flags: [],
      requestStartMs: 1_699_999_999_000,
      connectionId: '7',
      connectionAgeMs: 7000,
      method: 'GET',
      path: '/',
      authority: 'shop.test',
      traceparent: undefined,
      debugSecret: undefined,
      injected: undefined,
    };
    const tags = {
      cluster: 'app',
      endpoint: '127.0.0.11:8080',
      attempts: 2,
      retried: true,
      connectionId: '7',
      connectionAgeMs: 7000,
      pin: 'stale' as const,
      profile: 'tag' as const,
    };
    emit.tagged({ facts, tags, pin: pin({ pin: 'stale' }) });
    const families = scraped(emit);
    expect(total(families, 'sidelight_retried_requests_total')).toBe(1);
    expect(total(families, 'sidelight_requests_total', { sidelight_outcome: 'unknown' })).toBe(1);
    expect(total(families, 'sidelight_requests_total', { sidelight_outcome: 'masked' })).toBe(0);
    expect(total(families, 'sidelight_pinned_requests_total', { sidelight_pin: 'stale' })).toBe(1);
    expect(total(families, 'sidelight_upstream_connection_age_seconds_sum')).toBe(7);
    expect(total(families, 'sidelight_self_exchanges_incomplete_total', { sidelight_reason: 'profile_tag' })).toBe(1);
  });

  it('of a pin count each event by layer, and its end by how; they start at 0 with the first pin', () => {
    const emit = testEmit();
    const events = () =>
      samplesOf(scraped(emit), 'sidelight_pin_events_total').map(({ labels, value }) =>
        [labels['sidelight_layer'], labels['sidelight_event'], labels['sidelight_how'], value].filter(
          (part) => part !== undefined,
        ),
      );
    emit.exchange(judged());
    expect(events()).toEqual([]);
    emit.pinEvent('opened', pinLife({ life: { pin: 'draining' } }));
    expect(events()).toEqual([
      ['http', 'opened', 1],
      ['http', 'stale', 0],
      ['http', 'stale_view', 0],
      ...['closed', 'gone', 'quiet', 'relisted', 'moved', 'evicted'].map((how) => ['http', 'cleared', how, 0]),
    ]);
    const families = scraped(emit);
    const endpoint = { sidelight_endpoint: '127.0.0.11:8080' };
    for (const name of ['sidelight_pin_bytes_total', 'sidelight_pin_requests_total'])
      expect(samplesOf(families, name, endpoint).map(({ value }) => value)).toEqual([0]);
    emit.pinEvent('stale', pinLife());
    emit.pinEvent('cleared', clearedPin({ cleared: { how: 'quiet', by: undefined } }));
    emit.pinEvent('opened', pinLife({ connection: { layer: 'tcp' } }));
    expect(events().filter((row) => row.at(-1) === 1)).toEqual([
      ['http', 'opened', 1],
      ['http', 'stale', 1],
      ['http', 'cleared', 'quiet', 1],
      ['tcp', 'opened', 1],
    ]);
  });

  it('about Sidelight itself are counted, and start at 0 where the values are known', () => {
    const emit = testEmit();
    emit.self.streamOpened('access_log');
    emit.self.streamOpened('access_log');
    emit.self.streamClosed('access_log');
    emit.self.message('ext_proc');
    emit.self.refused('message_bytes');
    emit.self.tagDuration(0.3);
    emit.self.failOpen('no_facts');
    emit.self.joinEvent('late');
    emit.self.attemptCountMismatch();
    const families = scraped(emit);
    expect(total(families, 'sidelight_self_streams', { sidelight_stream: 'access_log' })).toBe(1);
    expect(total(families, 'sidelight_self_messages_total', { sidelight_stream: 'ext_proc' })).toBe(1);
    expect(samplesOf(families, 'sidelight_self_decode_errors_total').map(({ value }) => value)).toEqual([0, 0]);
    expect(total(families, 'sidelight_self_refused_total', { sidelight_limit: 'message_bytes' })).toBe(1);
    expect(total(families, 'sidelight_self_tag_duration_seconds_bucket', { le: '0.00025' })).toBe(0);
    expect(total(families, 'sidelight_self_tag_duration_seconds_bucket', { le: '0.0005' })).toBe(1);
    expect(total(families, 'sidelight_self_fail_open_total')).toBe(1);
    expect(total(families, 'sidelight_self_join_events_total', { sidelight_event: 'late' })).toBe(1);
    expect(total(families, 'sidelight_self_join_events_total', { sidelight_event: 'expired' })).toBe(0);
    expect(total(families, 'sidelight_self_attempt_count_mismatches_total')).toBe(1);
  });
});

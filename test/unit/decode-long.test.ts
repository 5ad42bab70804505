import { describe, expect, test } from 'vitest';
import { decodeLogMessage } from '../../src/decode/log-message.ts';
import type { LogEntry } from '../../src/model/log-entry.ts';
import { readRecording } from '../support/recordings.ts';
import { limits } from '../support/wire.ts';

/** What told of the one upstream connection, in the order in which it came. */
function entriesOf(version: string, name: string): LogEntry[] {
  return readRecording(name, version).messages.flatMap(({ bytes }) => {
    const result = decodeLogMessage(Buffer.from(bytes, 'base64'), limits);
    if (!result.ok) throw new Error(result.error.text);
    return result.message.entries.filter(({ type }) => type !== 'downstream_end');
  });
}

const growing = (values: (number | undefined)[]) => values.toSorted((a, b) => (a ?? 0) - (b ?? 0));

describe.each(['1.40', '1.37'])('Envoy %s, while it lives', (version) => {
  test.each(['long-request-http1', 'long-request-http2', 'long-request-silent'])('%s says where it goes', (name) => {
    const entries = entriesOf(version, name);
    expect(entries.map(({ type }) => type)).toEqual([
      'upstream_periodic',
      'upstream_periodic',
      'upstream_periodic',
      'upstream_end',
    ]);
    const [first] = entries;
    for (const { key, startMs, upstream, cluster, tags } of entries) {
      expect(upstream?.ip).toBe('127.0.0.11');
      expect({ key, startMs, cluster, tags }).toEqual({
        key: first?.key,
        startMs: first?.startMs,
        cluster: 'app',
        tags: first?.tags,
      });
    }
    expect(first?.key).toMatch(/^\d+\.\d{19}$/);
    expect(first?.tags.connectionId).toMatch(/^[1-9]\d*$/);
    expect(first?.tags.connectionAgeMs).toBeLessThan(100);
    // While it lives the duration is that of the tag.
    const durations = entries.map(({ durationMs }) => durationMs);
    expect(durations).toEqual(growing(durations));
    expect(durations[0]).toBeGreaterThan(300);
    expect(durations[0]).toBeLessThan(800);
  });

  test.each(['long-request-http1', 'long-request-http2'])('%s counts its bytes', (name) => {
    const bytes = entriesOf(version, name).map(({ bytesReceived }) => bytesReceived);
    expect(bytes[0]).toBeGreaterThan(0);
    expect(new Set(bytes).size).toBe(bytes.length);
    expect(bytes).toEqual(growing(bytes));
  });

  test('a silent request has no code and no byte until its end', () => {
    const said = entriesOf(version, 'long-request-silent').map(({ code, bytesReceived }) => [code, bytesReceived]);
    expect(said).toEqual([
      [undefined, 0],
      [undefined, 0],
      [undefined, 0],
      [200, 4],
    ]);
  });

  test('a TCP connection says its peer, its age and its bytes', () => {
    const entries = entriesOf(version, 'tcp-connection');
    const types = entries.map(({ type }) => type);
    expect(types[0]).toBe('tcp_upstream_connected');
    expect(types.at(-1)).toBe('tcp_connection_end');
    expect(types.slice(1, -1).length).toBeGreaterThanOrEqual(2);
    expect(new Set(types.slice(1, -1))).toEqual(new Set(['tcp_periodic']));
    expect(new Set(entries.map(({ upstream }) => upstream?.ip))).toEqual(new Set(['127.0.0.11']));
    expect(new Set(entries.map(({ key, tags }) => `${key} ${tags.connectionId}`)).size).toBe(1);
    const bytes = entries.map(({ bytesSent }) => bytesSent);
    expect(bytes).toEqual(growing(bytes));
    expect(bytes.at(-1)).toBe(15);
  });
});

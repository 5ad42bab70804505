import { once } from 'node:events';
import http2 from 'node:http2';
import { afterEach, expect, test } from 'vitest';
import { Cleanup } from '../../src/lab/cleanup.ts';
import { TestIngress } from '../support/ingress.ts';

/*
 * Envoy's gRPC client sends its cluster's name as `:authority` unless `envoy_grpc.authority` says another. Node's HTTP/2
 * takes the bars of Istio's names for no authority, before any code of ours runs: whoever attaches must set it.
 */
const cleanup = new Cleanup();
afterEach(() => cleanup.run());

async function callWith(authority: string): Promise<string> {
  const { port } = cleanup.use(await TestIngress.start());
  const session = http2.connect(`http://127.0.0.1:${port}`);
  cleanup.defer(() => session.destroy());
  const stream = session.request({
    ':method': 'POST',
    ':path': '/grpc.health.v1.Health/Check',
    ':authority': authority,
    'content-type': 'application/grpc',
  });
  const outcome = once(stream, 'response').then(
    () => 'answered',
    (error: unknown) => (error as Error).message,
  );
  // An empty HealthCheckRequest.
  stream.end(Buffer.alloc(5));
  return outcome;
}

test('a call whose authority is a host is answered', async () => {
  expect(await callWith('sidelight.sidelight')).toBe('answered');
});

test('a call whose authority is an Istio cluster name is reset, and nobody here hears of it', async () => {
  expect(await callWith('outbound|50051||sidelight.sidelight.svc.cluster.local')).toContain('NGHTTP2_PROTOCOL_ERROR');
});

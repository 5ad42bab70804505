import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Cleanup } from '../../src/lab/cleanup.ts';
import type { KubernetesApi } from './kubernetes-api.ts';

/** What stands for `127.0.0.N` in a slice: the API server takes no loopback address there. */
export function podIp(loopback: string): string {
  return loopback.replace(/^127\.0\.0\./, '10.77.0.');
}

/** An API server in front of the real one, with its certificate, whose slices have the pods on loopback. */
export async function startLoopbackSlices(cleanup: Cleanup, api: KubernetesApi): Promise<{ kubeconfig: string }> {
  const ca = readFileSync(api.caFile);
  const key = readFileSync(path.join(path.dirname(api.caFile), 'apiserver.key'));
  const server = https.createServer({ key, cert: ca }, (request, response) => {
    const { authorization = '' } = request.headers;
    const asked = https.get(new URL(request.url ?? '/', api.url), { ca, agent: false, headers: { authorization } });
    const cut = () => response.destroy();
    response.once('close', () => asked.destroy());
    asked.once('error', cut);
    asked.once('response', (answer) => {
      response.writeHead(answer.statusCode ?? 502, { 'content-type': answer.headers['content-type'] });
      response.flushHeaders();
      pipeline(answer, onLoopback(), response).catch(cut);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanup.defer(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { kubeconfig: api.kubeconfig(api.adminToken, `https://127.0.0.1:${port}`) };
}

/** Line by line, because an address may come in two pieces. */
function onLoopback(): Transform {
  let rest = '';
  const moved = (text: string) => text.replaceAll('"10.77.0.', '"127.0.0.');
  return new Transform({
    decodeStrings: true,
    transform(chunk: Buffer, _encoding, done) {
      const lines = (rest + chunk.toString('latin1')).split('\n');
      rest = lines.pop() ?? '';
      done(null, Buffer.from(lines.map((line) => `${moved(line)}\n`).join(''), 'latin1'));
    },
    flush(done) {
      done(null, Buffer.from(moved(rest), 'latin1'));
    },
  });
}

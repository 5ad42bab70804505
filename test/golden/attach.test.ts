import { expect, it } from 'vitest';
import { runAttach } from '../support/attach.ts';

/* What `sidelight attach` writes, to be read in a review: `vitest run --project fast test/golden -u` writes it anew. */
const plain = 'test/fixtures/attach/plain.yaml';

it.each([
  ['sidecar-outbound', '--to sidecar-outbound --namespace shop --selector app=cart --profile full'],
  [
    'both-sides-by-service',
    '--to sidecar-outbound --to sidecar-inbound --namespace shop --service sidelight.sidelight',
  ],
  ['waypoint', '--to waypoint --namespace shop --profile full --service sidelight.sidelight'],
  ['waypoints-of-5000', '--to waypoint --mesh --profile tag --istio 1.28 --proxies 5000 --message-timeout 50ms'],
  [
    'gateway',
    '--to gateway --namespace istio-ingress --gateway front --uds /run/sidelight/grpc.sock --no-tcp --istio 1.30',
  ],
  ['envoy', `--to envoy --config ${plain}`],
  ['envoy-sampled', `--to envoy --config ${plain} --profile full --listener http --inject --sample 10%`],
])('writes %s', async (name, command) => {
  await expect(runAttach(...command.split(' '))).toMatchFileSnapshot(`attach/${name}.yaml`);
});

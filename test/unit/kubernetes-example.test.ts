import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { type Bootstrap, type Cluster, type Json, shippedConfig } from '../../src/lab/envoy-config.ts';
import { readManifestText } from '../support/manifests.ts';

/* The Envoys of the example carry what is shipped in envoy/, or it would be an example of something else. */

/** The shipped file without its TCP part. */
function shippedHttp(): Bootstrap {
  const shipped = shippedConfig('observe');
  const { listeners, clusters } = shipped.static_resources;
  return {
    ...shipped,
    static_resources: {
      listeners: listeners.filter(({ name }) => name !== 'tcp'),
      clusters: clusters.filter(({ name }) => name !== 'tcp-app'),
    },
  };
}

it('the one that reports to the shared Sidelight differs in the address of Sidelight', () => {
  const expected = shippedHttp();
  const sidelight = expected.static_resources.clusters.at(-1) as Cluster;
  Object.assign(sidelight, { type: 'STRICT_DNS' });
  const address = { address: 'sidelight-replicas.sidelight.svc.cluster.local', port_value: 50051 };
  const assignment = sidelight['load_assignment'] as { endpoints: [{ lb_endpoints: [{ endpoint: Json }] }] };
  assignment.endpoints[0].lb_endpoints[0].endpoint = { address: { socket_address: address } };

  expect(parse(readManifestText('example/envoy.yaml'))).toEqual(expected);
});

it('the one with Sidelight in its pod differs in the port of its admin interface, which Sidelight asks', () => {
  const expected = shippedHttp();
  expected.admin.address.socket_address.port_value = 15000;

  expect(parse(readManifestText('overlays/same-pod/envoy.yaml'))).toEqual(expected);
  expect(parse(readManifestText('components/same-pod/sidelight.yaml'))).toMatchObject({
    listen: { grpc: '127.0.0.1:50051' },
    discovery: { envoyAdmin: { urls: ['http://127.0.0.1:15000'] } },
  });
});

import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { commandEnds } from '../support/attach.ts';

/* The rules that are shipped: `vitest run --project fast test/golden -u` writes them anew. */
it.each([
  ['recording', 'monitoring/prometheus/rules.yaml'],
  ['alerts', 'monitoring/prometheus/alerts.yaml'],
  ['operator', 'k8s/overlays/monitoring/prometheusrule.yaml'],
])('`sidelight rules %s` is %s', async (form, file) => {
  const { code, out, err } = commandEnds('rules', form);
  expect([code, err]).toEqual([0, '']);
  await expect(out).toMatchFileSnapshot(`../../${file}`);
});

it('the PrometheusRule has the groups of the two files, in the namespace of the base', () => {
  const read = (form: string) => parse(commandEnds('rules', form).out);
  expect(read('operator')).toEqual({
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    metadata: { name: 'sidelight', namespace: 'sidelight' },
    spec: { groups: [...read('recording').groups, ...read('alerts').groups] },
  });
});

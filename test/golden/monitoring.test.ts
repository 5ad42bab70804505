import { expect, it } from 'vitest';
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

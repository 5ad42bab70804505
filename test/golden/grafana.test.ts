import { expect, it } from 'vitest';
import { dashboardJson } from '../../monitoring/grafana/dashboard.ts';

/* What is shipped is what the source makes: `vitest run --project fast test/golden/grafana.test.ts -u` writes it anew. */
it('the dashboard that is shipped is that of its source', async () => {
  await expect(dashboardJson()).toMatchFileSnapshot('../../monitoring/grafana/sidelight.json');
});

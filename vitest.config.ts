import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    reporters: ['default', './test/support/skip-reporter.ts'],
    // Two processes at a time: e2e tests start an Envoy each, and wait for real timeouts.
    maxWorkers: 2,
    maxConcurrency: 3,
    projects: [
      { test: { name: 'fast', include: ['test/{unit,property,golden}/**/*.test.ts'] } },
      {
        test: {
          name: 'e2e',
          include: ['test/{e2e,drill}/**/*.test.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
      {
        test: {
          name: 'istio',
          include: ['test/istio/**/*.test.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
});

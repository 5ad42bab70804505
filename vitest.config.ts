import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    projects: [
      { test: { name: 'fast', include: ['test/{unit,property,golden}/**/*.test.ts'] } },
      {
        test: {
          name: 'e2e',
          include: ['test/{e2e,drill}/**/*.test.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          maxWorkers: 2,
        },
      },
    ],
  },
});

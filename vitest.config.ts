import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Real processes start and stop in these tests; on a busy machine that takes a while.
    testTimeout: 60_000,
    hookTimeout: 120_000,
    // Two cores: more workers would only make workerd, Redis and the tests wait for each other.
    maxWorkers: 2,
  },
})

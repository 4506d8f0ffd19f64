import type { Sample } from '../../bench/measure/rounds.ts'

/** Returns a measured round with plausible values, except for the given ones. */
export const sampleOf = (values: Partial<Sample>): Sample => ({
  requests: 1_000,
  shed: 0,
  requestsPerSecond: 1_000,
  meanMs: 1,
  p50Ms: 1,
  p95Ms: 2,
  p99Ms: 3,
  cpuMicros: 500,
  cpuUserMicros: values.cpuMicros ?? 500,
  cpuSystemMicros: 0,
  redisCpuMicros: 0,
  redisCalls: 1,
  auditEvents: 0,
  gatewayCores: 1,
  redisCores: 0,
  loadCores: 0.5,
  otherCores: 0,
  ...values,
})

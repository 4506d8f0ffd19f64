/** The masters of a cluster in the metrics. */
import { expect, test } from 'vitest'
import { exposition } from '../../../src/observability/metrics/exposition.ts'
import { policyGauges } from '../../../src/observability/metrics/policy-version.ts'
import { withMasters } from '../../../src/runtimes/node/redis-gauges.ts'

const STATE = { answered: 1, failed: 0, fenced: 0 }

test('a master that an isolate does not believe is reported by its address', () => {
  const masters = new Map([['10.0.0.1:6379', { ...STATE, isBelieved: false }]])
  const gauges = withMasters(policyGauges(undefined), () => masters)
  expect(gauges.reported).toEqual(['redis-master:10.0.0.1:6379'])
  const open = new Map(gauges.reported.map((name) => [name, 2]))
  const counted = { counts: new Map(), isolates: 3, lastReportMs: undefined }
  const totals = { ...counted, open, bans: 0, overflowEvents: 0 }
  expect(exposition(totals, undefined, {}, gauges)).toContain(
    'portcullis_redis_master_doubted_isolates{master="10.0.0.1:6379"} 2',
  )
  masters.set('10.0.0.1:6379', { ...STATE, isBelieved: true })
  expect(gauges.reported).toEqual([])
})

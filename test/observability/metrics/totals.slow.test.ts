import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { METRICS } from '../../../src/observability/metrics/catalogue.ts'
import { type Metrics, startMetrics } from './isolates.ts'
import { amountOf, familiesOf, hasPromtool, promtool } from './text.ts'

const MAX_TOTAL_SERIES = 10_000
const MAX_SERIES = 5_000

let metrics: Metrics
beforeEach(async () => {
  metrics = await startMetrics()
})
afterEach(() => metrics.close())

const ORDERS = { method: 'GET', route: '/orders/:id', reason: 'ok', status: '200' }
const orders = async () => amountOf(await metrics.text(), 'portcullis_requests_total', ORDERS)
/** Reads directly from Redis, whatever the state of the connection is. */
const storedOrders = async () =>
  Number(
    await metrics.redis.direct.hget(
      'pc:metrics:totals',
      '["portcullis_requests_total","GET","/orders/:id","allow","ok","200"]',
    ),
  )

describe('counters of several isolates', () => {
  test('add up to one total', async () => {
    const [one, other] = [metrics.isolate(), metrics.isolate()]
    for (let count = 0; count < 3; count++) one.decide()
    for (let count = 0; count < 4; count++) other.decide()
    await metrics.pass(one, other)
    one.decide()
    await metrics.pass(one, other)
    expect(await orders()).toBe(8)
    expect((await metrics.read()).isolates).toBe(2)
  })

  test('are reported once for a thousand requests, in one call', async () => {
    const isolate = metrics.isolate()
    isolate.decide()
    await metrics.pass(isolate)
    const before = metrics.calls()
    const staying = Array.from({ length: 1_000 }, () => isolate.decide())
    expect(staying.filter((reports) => reports)).toHaveLength(1)
    await metrics.pass(isolate)
    expect(metrics.calls() - before).toBe(1)
    expect(await orders()).toBe(1_001)
  })

  test('contain durations as cumulative histograms in seconds, with sum and count', async () => {
    const isolate = metrics.isolate()
    for (const admit of [0, 1, 12, 40, 20_000]) isolate.decide({ durationsMs: { admit, proxy: 2 } })
    await metrics.pass(isolate)
    const text = await metrics.text()
    const admit = (part: string, labels: Record<string, string> = {}) =>
      amountOf(text, `portcullis_stage_duration_seconds_${part}`, { stage: 'admit', ...labels })
    const buckets = ['0', '0.001', '0.025', '0.05', '10', '+Inf'].map((le) =>
      admit('bucket', { le }),
    )
    expect(buckets).toEqual([1, 2, 3, 4, 4, 5])
    expect(admit('count')).toBe(5)
    expect(admit('sum')).toBe(20.053)
    const total = { method: 'GET', route: '/orders/:id' }
    expect(amountOf(text, 'portcullis_request_duration_seconds_count', total)).toBe(5)
  })

  test('name a refusal by its reason code, and a limit by its name', async () => {
    const isolate = metrics.isolate()
    const refused = { decision: 'deny', status: 401, durationsMs: {} } as const
    for (const check of ['exp', 'sig', 'aud'])
      isolate.decide({ ...refused, reason: `token_rejected:${check}` })
    isolate.decide({ ...refused, status: 429, reason: 'rate_limited:standard' })
    isolate.decide({ ...refused, decision: 'error', status: 503, reason: 'redis:timeout' })
    isolate.decide({ observed: ['permission_missing:orders:read', 'banned:address'] })
    await metrics.pass(isolate)
    const text = await metrics.text()
    const requests = (labels: Record<string, string>) =>
      amountOf(text, 'portcullis_requests_total', labels)
    expect(requests({ decision: 'deny', reason: 'token_rejected', status: '401' })).toBe(3)
    expect(requests({ decision: 'error', reason: 'redis:timeout', status: '503' })).toBe(1)
    expect(amountOf(text, 'portcullis_rate_limited_total', { limit: 'standard' })).toBe(1)
    const observed = { reason: 'permission_missing' }
    expect(amountOf(text, 'portcullis_observed_refusals_total', observed)).toBe(1)
  })

  test('count isolates with a breaker that is not closed for half a minute', async () => {
    const [one, other, well] = [
      metrics.isolate(['origin', 'origin', 'key_set']),
      metrics.isolate(['origin']),
      metrics.isolate(),
    ]
    for (const each of [one, other, well]) each.decide()
    await metrics.pass(one, other, well)
    const open = async (dependency: string) =>
      amountOf(await metrics.text(), 'portcullis_breaker_open_isolates', { dependency })
    expect([await open('origin'), await open('key_set'), await open('redis')]).toEqual([2, 1, 0])
    metrics.clock.nowMs += 36_000
    expect([await open('origin'), await open('key_set'), await open('redis')]).toEqual([0, 0, 0])
  })
})

test('add up in the Redis that npm start embeds as well', async () => {
  const embedded = await startMetrics('embedded')
  try {
    const [one, other] = [embedded.isolate(['redis']), embedded.isolate()]
    for (const each of [one, one, other]) each.decide()
    await embedded.pass(one, other)
    embedded.setLine('answers lost')
    one.decide()
    await embedded.pass(one)
    embedded.setLine('good')
    one.decide()
    await embedded.pass(one)
    one.decide()
    await embedded.pass(one)
    const text = await embedded.text()
    expect(amountOf(text, 'portcullis_requests_total', ORDERS)).toBe(6)
    expect(amountOf(text, 'portcullis_breaker_open_isolates', { dependency: 'redis' })).toBe(1)
    for (const key of await embedded.redis.direct.keys('*'))
      expect(await embedded.redis.direct.ttl(key)).toBeGreaterThan(3_000)
  } finally {
    await embedded.close()
  }
})

describe('a report is counted once:', () => {
  test('if its response was lost', async () => {
    const isolate = metrics.isolate()
    isolate.decide()
    await metrics.pass(isolate)
    metrics.setLine('answers lost')
    for (let count = 0; count < 5; count++) isolate.decide()
    await metrics.pass(isolate)
    expect(await storedOrders()).toBe(6)
    isolate.decide()
    await metrics.pass(isolate)
    metrics.setLine('good')
    isolate.decide()
    await metrics.pass(isolate)
    expect(await orders()).toBe(6)
    isolate.decide()
    await metrics.pass(isolate)
    expect(await orders()).toBe(9)
    const text = await metrics.text()
    expect(amountOf(text, 'portcullis_metrics_flush_failures_total')).toBe(2)
  })

  test('if it did not arrive until Redis was reachable again', async () => {
    const isolate = metrics.isolate()
    metrics.setLine('cut')
    for (let report = 0; report < 3; report++) {
      isolate.decide()
      await metrics.pass(isolate)
    }
    expect((await metrics.redis.direct.keys('pc:metrics:*')).length).toBe(0)
    metrics.setLine('good')
    for (let report = 0; report < 2; report++) {
      isolate.decide()
      await metrics.pass(isolate)
    }
    expect(await orders()).toBe(5)
  })

  test('or not at all once Redis may have forgotten its number', async () => {
    const isolate = metrics.isolate()
    isolate.decide()
    await metrics.pass(isolate)
    metrics.setLine('answers lost')
    isolate.decide()
    await metrics.pass(isolate)
    expect(await storedOrders()).toBe(2)
    metrics.setLine('good')
    metrics.clock.nowMs += 3_600_000
    await metrics.redis.direct.del(...(await metrics.redis.direct.keys('pc:metrics:report:*')))
    isolate.decide()
    await metrics.pass(isolate)
    expect(await orders()).toBe(3)
    expect(amountOf(await metrics.text(), 'portcullis_metrics_dropped_total')).toBeGreaterThan(0)
  })

  test('if the request that would have sent it ended first', async () => {
    const isolate = metrics.isolate()
    isolate.decide()
    isolate.kill()
    expect(isolate.decide()).toBe(false)
    metrics.clock.nowMs += 16_000
    expect(isolate.decide()).toBe(true)
    await metrics.pass(isolate)
    expect(await orders()).toBe(3)
  })
})

describe('metrics use bounded storage [R18]', () => {
  test('every key has a TTL', async () => {
    const isolate = metrics.isolate(['redis'])
    isolate.decide()
    await metrics.pass(isolate)
    const { direct } = metrics.redis
    const keys = await direct.keys('*')
    expect(keys.map((key) => key.replace(/[0-9a-f]{16}$/, '<isolate>')).sort()).toEqual([
      'pc:metrics:isolates',
      'pc:metrics:report:<isolate>',
      'pc:metrics:totals',
    ])
    for (const key of keys) expect(await direct.ttl(key)).toBeGreaterThan(3_000)
  })

  test('methods and paths that a caller invents create no series', async () => {
    const isolate = metrics.isolate()
    const unknown = { route: null, decision: 'deny', reason: 'not_found', status: 404 } as const
    isolate.decide({ ...unknown, method: 'M-1', durationsMs: {} })
    await metrics.pass(isolate)
    const before = (await metrics.read()).counts.size
    for (let count = 2; count < 500; count++)
      isolate.decide({ ...unknown, method: `M-${count}`, durationsMs: {} })
    await metrics.pass(isolate)
    expect((await metrics.read()).counts.size).toBe(before)
    const other = { method: 'other', route: 'none' }
    expect(amountOf(await metrics.text(), 'portcullis_requests_total', other)).toBe(499)
  })

  test('an isolate keeps at most 5,000 series, and counts the samples that it drops', async () => {
    const isolate = metrics.isolate()
    for (let route = 0; route < 2 * MAX_SERIES; route++) isolate.decide({ route: `/${route}` })
    await metrics.pass(isolate)
    const { counts } = await metrics.read()
    expect(counts.size).toBeLessThanOrEqual(MAX_SERIES)
    const text = await metrics.text()
    const kept = amountOf(text, 'portcullis_requests_total')
    expect(amountOf(text, 'portcullis_metrics_dropped_total')).toBe(2 * MAX_SERIES - kept)
  })

  test('Redis keeps at most 5,000 series, however many isolates and policies report', async () => {
    for (let policy = 0; policy < 4; policy++) {
      const isolate = metrics.isolate()
      for (let route = 0; route < MAX_SERIES; route++)
        isolate.decide({ route: `/${policy}/${route}` })
      await metrics.pass(isolate)
    }
    expect((await metrics.read()).counts.size).toBeLessThanOrEqual(MAX_TOTAL_SERIES + MAX_SERIES)
  })
})

describe('the metrics text', () => {
  const UNUSUAL = { route: '/a"b\\c\nd', limits: [], durationsMs: { admit: 3 } }

  test('has HELP and TYPE of every metric, and label values round-trip', async () => {
    const isolate = metrics.isolate()
    isolate.decide(UNUSUAL)
    await metrics.pass(isolate)
    const text = await metrics.text(1_800_000_000_500)
    expect(text).toContain('route="/a\\"b\\\\c\\nd"')
    const families = familiesOf(text)
    expect([...families.keys()]).toEqual(Object.keys(METRICS))
    for (const { help } of families.values()) expect(help.length).toBeGreaterThan(10)
    const sample = families
      .get('portcullis_requests_total')
      ?.samples.get('portcullis_requests_total')
    expect(sample?.map(({ labels }) => labels.route)).toEqual(['/a"b\\c\nd'])
    expect(text).toContain('portcullis_audit_newest_event_timestamp_seconds 1800000000.5\n')
  })

  test.runIf(hasPromtool)('passes promtool without a warning', async () => {
    const isolate = metrics.isolate(['redis'])
    isolate.decide(UNUSUAL)
    isolate.decide()
    await metrics.pass(isolate)
    expect(promtool(['check', 'metrics'], await metrics.text(1))).toEqual({ status: 0, output: '' })
    expect(promtool(['check', 'metrics'], 'portcullis{ 1\n').status).not.toBe(0)
  })

  test('omits series that this version does not support', async () => {
    const isolate = metrics.isolate()
    isolate.decide()
    await metrics.pass(isolate)
    const before = await metrics.text()
    for (const field of [
      '["portcullis_other_total"]',
      '["toString"]',
      'rubbish',
      '["portcullis_bans"]',
      '["portcullis_requests_total","GET"]',
    ])
      await metrics.redis.direct.hset('pc:metrics:totals', field, '7')
    expect(await metrics.text()).toContain(before.slice(0, 200))
    expect(await metrics.text()).not.toContain(' 7\n')
  })
})

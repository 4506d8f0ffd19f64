import { afterAll, expect, inject, test, vi } from 'vitest'
import { fromAddress, newAddress } from '../harness/address.ts'
import { mint } from '../harness/issuer.ts'
import { keysOf, withoutLane } from '../harness/stack-redis.ts'
import { amountOf, hasPromtool, promtool } from '../observability/metrics/text.ts'

const stack = inject('stack')
const [here, there] = stack.gateways
const redis = keysOf(stack)
afterAll(() => redis.disconnect())

const scrape = async (gateway: string) => {
  const response = await fetch(`${gateway}/-/metrics`)
  expect(response.status).toBe(200)
  return response.text()
}
const patience = { timeout: 40_000, interval: 1_000 }

test('the decisions of one gateway appear in the metrics of the other', async () => {
  const path = { method: 'DELETE', route: '/orders/:id' }
  const refusals = (text: string) =>
    amountOf(text, 'portcullis_requests_total', { ...path, reason: 'permission_missing' })
  const before = refusals(await scrape(there))
  const token = await mint(stack.inlineKey, { claims: { roles: ['reader'] } })
  for (let count = 0; count < 7; count++) {
    const { status } = await fetch(`${here}/orders/${crypto.randomUUID()}`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${token}`, ...fromAddress(newAddress()) },
    })
    expect(status).toBe(403)
  }
  await vi.waitFor(async () => expect(refusals(await scrape(there))).toBe(before + 7), patience)

  const text = await scrape(here)
  expect(amountOf(text, 'portcullis_isolates')).toBeGreaterThan(0)
  expect(amountOf(text, 'portcullis_audit_events_total', { outcome: 'sent' })).toBeGreaterThan(0)
  const newest = 'portcullis_audit_newest_event_timestamp_seconds'
  await vi.waitFor(
    async () => expect(amountOf(await scrape(here), newest)).toBeGreaterThan(1e9),
    patience,
  )
  if (hasPromtool) expect(promtool(['check', 'metrics'], text)).toEqual({ status: 0, output: '' })
})

test('every key of the metrics has a TTL [R18]', async () => {
  const keys = await redis.names('pc:metrics:*')
  expect(keys.map(withoutLane)).toContain('pc:metrics:totals')
  for (const key of keys) expect(await redis.ttl(key)).toBeGreaterThan(0)
})

import { createHmac } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { addressSink } from '../../src/audit/address.ts'
import type { AuditEvent } from '../../src/audit/event.ts'
import { addressGroup } from '../../src/middleware/client-address.ts'
import { anEvent } from './event.ts'

const KEY = 'q9TqzT0m8kYw5n2fJ4vXc7LrBdHsEaGu'

function recording() {
  const events: AuditEvent[] = []
  const pending: Promise<unknown>[] = []
  const waitUntil = (promise: Promise<unknown>) => void pending.push(promise)
  return {
    events,
    pending,
    waitUntil,
    sink: { record: (event: AuditEvent) => void events.push(event) },
  }
}

/** Returns the address that an event has in the trail when addresses are truncated. */
function truncated(address: string): string | undefined {
  const { events, waitUntil, sink } = recording()
  addressSink(sink, { form: 'truncated', key: '' }).record(anEvent({ address }), waitUntil)
  return events[0]?.address
}

describe('the client address in audit events [S66]', () => {
  test.each([
    ['192.0.2.77', '192.0.2.0/24'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1::/48'],
    ['2001:0db8:0:ffff::1', '2001:db8:0::/48'],
    ['::1', '0:0:0::/48'],
    ['::ffff:192.0.2.77', '192.0.2.0/24'],
  ])('%s is %s when it is truncated', (address, network) => {
    expect(truncated(addressGroup(address) ?? '')).toBe(network)
    expect(truncated(network)).toBe(network)
  })

  test('is absent if the request had none', () => {
    expect(truncated('unknown')).toBe('unknown')
  })

  test('is whole or truncated, and the rest of the event is unchanged', () => {
    const event = anEvent({ address: '192.0.2.77' })
    const { events, pending, waitUntil, sink } = recording()
    expect(addressSink(sink, { form: 'full', key: '' })).toBe(sink)
    addressSink(sink, { form: 'truncated', key: '' }).record(event, waitUntil)
    expect(events).toEqual([{ ...event, address: '192.0.2.0/24' }])
    expect(event.address).toBe('192.0.2.77')
    expect(pending).toEqual([])
  })

  test('is a keyed hash, computed behind the response once per address', async () => {
    const { events, pending, waitUntil, sink } = recording()
    const hashing = addressSink(sink, { form: 'hashed', key: KEY })
    hashing.record(anEvent({ address: '192.0.2.77' }), waitUntil)
    expect(events).toEqual([])
    await Promise.all(pending)
    hashing.record(anEvent({ address: '192.0.2.77' }), waitUntil)
    hashing.record(anEvent({ address: 'unknown' }), waitUntil)
    expect(pending).toHaveLength(1)
    const hash = `h:${createHmac('sha256', KEY).update('192.0.2.77').digest('base64url')}`
    expect(events.map(({ address }) => address)).toEqual([hash, hash, 'unknown'])
  })

  test.each([
    ['192.0.2.77', '192.0.2.0/24'],
    ['2001:db8:1:2::/64', '2001:db8:1::/48'],
  ])("stays readable as an operator's target and is %s elsewhere", async (address, network) => {
    const change = { action: 'limit.reset', target: `anonymous:${address}` }
    const hash = `h:${createHmac('sha256', KEY).update(address).digest('base64url')}`
    for (const [form, addresses] of [
      ['truncated', network],
      ['hashed', hash],
    ] as const) {
      const { events, pending, waitUntil, sink } = recording()
      const addressing = addressSink(sink, { form, key: KEY })
      const ban = { action: 'ban.create', target: 'an-id' }
      addressing.record(anEvent({ requestId: 'reset', address: '198.51.100.7', change }), waitUntil)
      addressing.record(anEvent({ requestId: 'ban', change: ban }), waitUntil)
      addressing.record(anEvent({ requestId: 'no-address', address: 'unknown', change }), waitUntil)
      await Promise.all(pending)
      // The hashes complete in any order, and so do the events.
      const of = (id: string) => events.find(({ requestId }) => requestId === id)
      const reset = { action: 'limit.reset', target: `anonymous:${addresses}` }
      expect(of('reset')?.change).toEqual(reset)
      expect(of('ban')?.change).toEqual(ban)
      expect(of('no-address')).toMatchObject({ address: 'unknown', change: reset })
    }
  })

  test('has another hash with another key', async () => {
    const addresses = await Promise.all(
      [KEY, KEY.toLowerCase()].map(async (key) => {
        const { events, pending, waitUntil, sink } = recording()
        addressSink(sink, { form: 'hashed', key }).record(anEvent(), waitUntil)
        await Promise.all(pending)
        return events[0]?.address
      }),
    )
    expect(new Set(addresses).size).toBe(2)
    expect(addresses.join()).not.toContain('192.0.2')
  })
})

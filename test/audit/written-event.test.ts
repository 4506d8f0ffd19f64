import { expect, test } from 'vitest'
import { auditEventSchema } from '../../src/audit/event-schema.ts'
import { writtenEvent } from '../../src/audit/written-event.ts'
import { anEvent } from './event.ts'

const full = anEvent({
  host: '*.example.com',
  origin: 'orders',
  observed: ['rate_limited:standard'],
  rejected: { seen: '"a"', expected: '["b"]', verified: false },
  call: { method: 'tools/call', name: 'search' },
  grants: { roles: ['reader'], scopes: [] },
  fields: { 'mcp.session': 'x' },
})

test('an event that a gateway wrote is recognized without its schema', () => {
  for (const event of [anEvent(), full]) expect(writtenEvent(event)).toBe(event)
})

test('a value of a wrong type, a missing member and an unknown member are left to the schema', () => {
  const wrong = [7, null, [], {}, 'x', true, undefined]
  for (const name of Object.keys(full) as (keyof typeof full)[]) {
    for (const value of wrong) {
      const changed = { ...full, [name]: value }
      const accepted = writtenEvent(changed) !== undefined
      const isEmpty = typeof value === 'object' && value !== null
      // The schema refuses more: it looks into lists and objects.
      if (accepted && !isEmpty) expect(auditEventSchema.safeParse(changed).success).toBe(true)
    }
  }
  expect(writtenEvent({ ...full, unknown: 1 })).toBeUndefined()
  expect(writtenEvent({ ...full, actor: { ...full.actor, unknown: 1 } })).toBeUndefined()
  const { reason: _, ...incomplete } = full
  expect(writtenEvent(incomplete)).toBeUndefined()
})

test('a list or an object that is too deep to be written again is left to the schema', () => {
  const deep = JSON.parse(`${'['.repeat(1_000)}${']'.repeat(1_000)}`)
  for (const name of ['limits', 'observed'] as const)
    expect(writtenEvent({ ...full, [name]: deep })).toBeUndefined()
  for (const name of ['durationsMs', 'rejected', 'call', 'grants', 'fields'] as const)
    expect(writtenEvent({ ...full, [name]: { deep } })).toBeUndefined()
})

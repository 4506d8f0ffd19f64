/** What features record in an event: bounded texts, stored, and removed by an erasure. */
import { Hono } from 'hono'
import { expect, test } from 'vitest'
import { forgetting } from '../../src/audit/erasure.ts'
import type { AuditEvent } from '../../src/audit/event.ts'
import { auditEventSchema } from '../../src/audit/event-schema.ts'
import { CALLER, erased } from '../../src/audit/personal.ts'
import { eventOfRow } from '../../src/audit/sql/audit-row.ts'
import { serializeEvent, utf8Length } from '../../src/audit/truncate.ts'
import { audit } from '../../src/middleware/audit.ts'
import { recordField } from '../../src/middleware/context.ts'
import { committed, rowOf } from './earlier-rows.ts'
import { anEvent } from './event.ts'

const MAX_EVENT_BYTES = 8_192

async function eventWith(fields: readonly (readonly [string, string])[]): Promise<AuditEvent> {
  const events: AuditEvent[] = []
  const app = new Hono()
  app.use(audit({ sink: { record: (event) => void events.push(event) } }))
  app.get('/', (c) => {
    for (const [name, value] of fields) recordField(c, name, value)
    return c.text('')
  })
  await app.request('/')
  const [event] = events
  if (event === undefined) throw new Error('no event')
  return event
}

test('the last value of a field is recorded, stored as one column, and accepted by the consumer', async () => {
  const event = await eventWith([
    ['ticket', 'A-1'],
    ['zone', 'north'],
    ['ticket', 'A-2'],
  ])
  expect(event.fields).toEqual({ ticket: 'A-2', zone: 'north' })
  expect(auditEventSchema.parse(JSON.parse(serializeEvent(event)))).toEqual(event)
  expect(eventOfRow(rowOf(event))).toEqual(event)
  expect((await eventWith([])).fields).toBeUndefined()
})

test('an event has at most 16 fields of at most 256 characters, and stays valid when it is cut', async () => {
  const long = '\ud800漢'.repeat(500)
  const many = Array.from({ length: 20 }, (_, at) => [`field${at}`, long] as const)
  const { fields = {} } = await eventWith(many)
  expect(Object.keys(fields)).toHaveLength(16)
  for (const text of Object.values(fields)) {
    expect(text).toHaveLength(256)
    expect(text.isWellFormed()).toBe(true)
  }
  const written = serializeEvent(anEvent({ fields }))
  expect(utf8Length(written)).toBeLessThanOrEqual(MAX_EVENT_BYTES)
  expect(auditEventSchema.safeParse(JSON.parse(written)).success).toBe(true)
})

test('an erasure removes the fields from the events of the person, before and after they are stored', async () => {
  const event = anEvent({ fields: { ticket: 'A-1' } })
  const person = { issuer: 'https://issuer.example', subject: 'alice' }
  expect(forgetting(event, person)).not.toHaveProperty('fields')
  expect(forgetting(event, { ...person, subject: 'bob' })).toHaveProperty('fields')
  const row = await committed(rowOf(event))
  expect(erased(row, CALLER, 'id')).toMatchObject({ fields: null, salt: null })
})

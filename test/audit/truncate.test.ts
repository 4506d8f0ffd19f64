import { expect, test } from 'vitest'
import { auditEventSchema } from '../../src/audit/event-schema.ts'
import { serializeEvent, utf8Length } from '../../src/audit/truncate.ts'
import { anEvent } from './event.ts'

const MAX_CHANGE_EVENT_BYTES = 32_768
const MAX_EVENT_BYTES = 8_192

test('an ordinary event is written whole, on one line', () => {
  const event = anEvent()
  const text = serializeEvent(event)
  expect(JSON.parse(text)).toEqual(event)
  expect(text).not.toMatch(/[\r\n]/)
})

test.each([
  ['plain text', 'x'],
  ['three-byte characters', '漢'],
  ['surrogate pairs', '😀'],
  ['lone surrogates', '\ud800'],
  ['control characters, six bytes each in JSON', '\u0001'],
  ['quotes', '"'],
])('an event beyond 128 KB is cut to 8 KB, marked, and still valid: %s [R20]', (_, character) => {
  const long = character.repeat(150_000)
  const event = anEvent({
    requestId: long,
    traceId: long,
    actor: { issuer: long, subject: long, client: long, tenant: long, tokenIdHash: long },
    method: long,
    route: long,
    reason: long,
    address: long,
    colo: long,
    change: { action: long, target: long },
    observed: Array.from({ length: 500 }, (_, index) => `${index}${long.slice(0, 999)}`),
    limits: Array.from({ length: 500 }, () => ({
      name: long.slice(0, 999),
      limit: 9,
      remaining: 1,
    })),
    durationsMs: Object.fromEntries(
      Array.from({ length: 500 }, (_, index) => [`${index}${long.slice(0, 999)}`, index]),
    ),
  })
  const text = serializeEvent(event)
  expect(utf8Length(text)).toBeLessThanOrEqual(MAX_CHANGE_EVENT_BYTES)
  const unchanged = serializeEvent({ ...event, change: undefined })
  expect(utf8Length(unchanged)).toBeLessThanOrEqual(MAX_EVENT_BYTES)
  const cut = auditEventSchema.parse(JSON.parse(text))
  expect(cut).toMatchObject({ id: event.id, time: event.time, decision: 'allow', status: 200 })
  expect(cut.actor.subject).toMatch(/…\[\+\d+\]$/)
  expect(cut.change?.target).toMatch(/…\[\+\d+\]$/)
  expect(cut.observed?.at(-1)).toMatch(/^…\[\+\d+\]$/)
  expect(cut.limits.at(-1)?.name).toMatch(/^…\[\+\d+\]$/)
})

test("an operator's change is recorded whole up to 24 KB, whatever else the event holds", () => {
  const long = 'x'.repeat(2_000)
  const change = { action: 'relations.write', target: '+order:漢#viewer@user:"x" '.repeat(800) }
  expect(utf8Length(JSON.stringify(change))).toBeGreaterThan(23_000)
  const event = anEvent({ change, reason: long, route: long })
  const text = serializeEvent(event)
  expect(JSON.parse(text)).toEqual(event)
  expect(utf8Length(text)).toBeGreaterThan(MAX_EVENT_BYTES)
})

test('a single long field leaves the other fields whole', () => {
  const event = anEvent({ reason: 'r'.repeat(200_000) })
  const cut = JSON.parse(serializeEvent(event))
  expect(cut).toEqual({ ...event, reason: `${'r'.repeat(512)}…[+199488]` })
})

test('line breaks and JSON in a field stay inside the field [S66]', () => {
  const forged = 'alice"}\r\n{"id":"forged","decision":"allow"}\u2028'
  const event = anEvent({ actor: { ...anEvent().actor, subject: forged } })
  const text = serializeEvent(event)
  expect(text).not.toMatch(/[\r\n]/)
  expect(JSON.parse(text).actor.subject).toBe(forged)
  expect(Object.keys(JSON.parse(text))).toEqual(Object.keys(event))
})

test('the length is measured in bytes of UTF-8', () => {
  for (const text of ['', 'abc', 'é', '漢字', '😀', '\0\x7f'])
    expect(utf8Length(text)).toBe(Buffer.byteLength(text))
})

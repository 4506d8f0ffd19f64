import { isDeepStrictEqual } from 'node:util'
import { expect, test } from 'vitest'
import { eventOfLine, isLine, lineOf } from '../../src/audit/blocks/line.ts'
import { writtenLine } from '../../src/audit/blocks/written-line.ts'
import { auditEventSchema } from '../../src/audit/event-schema.ts'
import { timeMs } from '../../src/audit/time-of-event.ts'
import { serializeEvent } from '../../src/audit/truncate.ts'
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

const anonymous = anEvent({
  actor: { issuer: null, subject: null, client: null, tenant: null, tokenIdHash: null },
  route: null,
  decision: 'deny',
  reason: 'token_rejected:typ',
  status: 401,
  limits: [],
  durationsMs: {},
  colo: null,
  rejected: { seen: '"JWT"', expected: '["at+jwt"]', verified: false },
})
const limited = anEvent({
  limits: [
    { name: 'a', limit: 10, remaining: 0, unavailable: true },
    { name: 'b', limit: 0, remaining: 0 },
  ],
  durationsMs: { authenticate: 0.25, proxy: 12 },
  observed: ['banned', 'rate_limited:standard'],
  call: { method: 'tools/list' },
  grants: { roles: [], scopes: ['a', 'b'], plan: 'pro', relation: 'order:7#viewer' },
})

/** The fields of a line without the salt, which is random. */
const partsOf = (line: string) => line.split('\t').filter((_, at) => at !== 1)

test('the line of an event is taken from its text, and is the one that parsing it gives', () => {
  for (const event of [anEvent(), full, anonymous, limited]) {
    const text = serializeEvent(event)
    const written = writtenLine(text)
    expect(partsOf(written?.line ?? '')).toEqual(partsOf(lineOf(JSON.parse(text))))
    expect(isLine(written?.line ?? '')).toBe(true)
    const { line: _, ...read } = written ?? { line: '' }
    expect(event).toMatchObject(read)
    expect(read).toMatchObject({ actor: event.actor, durationsMs: event.durationsMs })
  }
  const two = [writtenLine(serializeEvent(full)), writtenLine(serializeEvent(full))]
  expect(two[0]?.line).not.toBe(two[1]?.line)
})

/** Each removes a character, or ends, begins or breaks a text at its place. */
const HOSTILE = new Set(['', '"', '\\', '\t', '\ud800'])

test('each changed text of an event is either an event with the same line, or left to the schema', () => {
  const changes = ['', ',', '"', '\\', '\t', '{', ']', '0', '-', '\ud800', '😀']
  let accepted = 0
  for (const event of [full, anonymous, limited]) {
    const text = serializeEvent(event)
    for (let at = 0; at <= text.length; at += 1)
      for (const [index, change] of changes.entries())
        for (const removed of [0, 1]) {
          // Others at some places only: all at each place would take four seconds.
          const isHostile = HOSTILE.has(change) && removed === (change === '' ? 1 : 0)
          if (!isHostile && (at + index + removed) % 11 !== 0) continue
          const changed = text.slice(0, at) + change + text.slice(at + removed)
          const written = writtenLine(changed)
          if (written === undefined) continue
          accepted += 1
          const value = JSON.parse(changed)
          if (!auditEventSchema.safeParse(value).success) expect.fail(changed)
          const { line } = written
          const isSame = isDeepStrictEqual(eventOfLine(line), value)
          if (!isSame || !isLine(line) || !line.isWellFormed()) expect.fail(changed)
        }
  }
  expect(accepted).toBeGreaterThan(200)
})

test('a text of another form is left to the schema', () => {
  const text = serializeEvent(full)
  expect(writtenLine(text)).toBeDefined()
  for (const [before, after] of [
    ['"reason":"ok"', '"reason":"o\\u006b"'],
    ['"reason":"ok"', '"reason":"\\u0000"'],
    ['"reason":"ok"', '"reason":"a","reason":"ok"'],
    ['"status":200', '"status":0200'],
    ['"status":200', '"status":2e2'],
    ['"status":200', '"status":999999999999999'],
    ['T12:00:00', 'T25:00:00'],
    ['T12:00:00', 'T24:00:00'],
    ['2026-11-20', '2026-02-30'],
    ['2026-11-20', '2026-02-29'],
    ['2026-11-20', '2026-04-31'],
    ['2026-11-20', '2026-00-10'],
    ['"durationsMs":{', '"durationsMs":{"a":-0,'],
    ['"durationsMs":{', '"durationsMs":{"a":1.0,'],
    ['"durationsMs":{', '"durationsMs":{"a":1,"b":2,"a":1,'],
    ['"fields":{', '"fields":{"a":"x","b":"x","a":"x",'],
    ['T12:00:00', 'T12:00:60'],
    ['2026-11-20', '2026-13-20'],
    ['"decision":"allow"', '"decision":"other"'],
    ['"colo":"FRA"', '"colo":"FRA","lost":1'],
    ['"method":"GET",', ''],
    ['{', ' {'],
  ] as const) {
    expect(text).toContain(before)
    expect(writtenLine(text.replace(before, () => after))).toBeUndefined()
  }
  for (const day of ['01-31', '06-30', '02-28', '10-29', '12-31'])
    expect(writtenLine(text.replace('2026-11-20', `2026-${day}`))).toBeDefined()
  const change = { action: 'ban.create', target: 'x' }
  expect(writtenLine(serializeEvent(anEvent({ change })))).toBeUndefined()
  expect(writtenLine(`${text}\n`)).toBeUndefined()
  const long = JSON.stringify(anEvent({ reason: 'x'.repeat(10_000) }))
  expect(writtenLine(long)).toBeUndefined()
})

test('the time of an event is that of Date.parse', () => {
  const minutes = ['2026-11-20T12:00', '2026-11-20T12:01', '2026-02-31T00:00', '1969-12-31T23:59']
  for (const minute of [...minutes, ...minutes, '2026-11-20T24:00', '2026-13-01T00:00'])
    for (const rest of [
      ':00.000Z',
      ':07.001Z',
      ':59.999Z',
      ':60.000Z',
      ':00Z',
      ':00.1Z',
      ':0a.000Z',
    ])
      expect(timeMs(minute + rest)).toBe(Date.parse(minute + rest))
})

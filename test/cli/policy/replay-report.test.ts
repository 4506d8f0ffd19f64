/**
 * Input and report of `portcullis policy replay`. `REPLAYED_EVENTS=1000000` writes and replays that many.
 */
import { createWriteStream, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { afterAll, describe, expect, test } from 'vitest'
import { Failure, REFUSED } from '../../../cli/failure.ts'
import { replayLines } from '../../../cli/policy/replay.ts'
import { createPredictor } from '../../../cli/policy/replay-decide.ts'
import {
  eventsOfFile,
  eventsOfGateway,
  parseLine,
  readCallers,
} from '../../../cli/policy/replay-input.ts'
import { createTally, reportText } from '../../../cli/policy/replay-report.ts'
import { styleFor } from '../../../cli/terminal.ts'
import { lineOf } from '../../../src/audit/blocks/line.ts'
import type { AuditEvent } from '../../../src/audit/event.ts'
import { ERASED_ADDRESS } from '../../../src/audit/personal.ts'
import { origins } from '../../../src/features/origins/index.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import { policyTester } from '../../../src/testing/index.ts'
import { rowOf } from '../../audit/earlier-rows.ts'

const EVENTS = Number(process.env.REPLAYED_EVENTS ?? 5_000)
const folder = mkdtempSync(join(tmpdir(), 'portcullis-replay-'))
afterAll(() => rmSync(folder, { recursive: true }))

const policyWith = (roles: Readonly<Record<string, readonly string[]>>) =>
  definePolicy({
    roles,
    limits: {},
    routes: [
      { method: 'GET', path: '/orders', permission: 'orders:read' },
      { method: 'GET', path: '/orders/:id', permission: 'orders:read' },
      { method: 'POST', path: '/orders', permission: 'orders:write' },
      { method: 'GET', path: '/status', anonymous: true },
    ],
  })
const recorded = policyWith({ reader: ['orders:read'], writer: ['orders:*'] })
const proposed = policyWith({ reader: ['orders:read'], writer: ['orders:write'] })

const ISSUER = 'https://issuer.test'
const eventOf = (subject: string | null, changes: Partial<AuditEvent> = {}): AuditEvent => ({
  id: '0193b0a4-7c1e-7d3a-9b1c-2f6e8d4a5b6c',
  time: '2026-11-20T16:00:00.000Z',
  requestId: 'request-1',
  traceId: '0'.repeat(32),
  actor: {
    issuer: subject && ISSUER,
    subject,
    client: subject && 'shop',
    tenant: null,
    tokenIdHash: null,
  },
  method: 'GET',
  route: '/orders/:id',
  decision: 'allow',
  reason: 'ok',
  status: 200,
  limits: [],
  durationsMs: {},
  address: '192.0.2.1',
  colo: null,
  ...changes,
})

const CALLERS = [
  { subject: 'alice', roles: ['reader'] },
  { subject: 'bob', issuer: ISSUER, client: 'shop', roles: ['writer'], scopes: [] },
]

function file(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}
const callers = file('callers.json', JSON.stringify(CALLERS))

async function replayed(path: string, limitSamples = 1) {
  const tally = createTally(limitSamples)
  const predictor = createPredictor({ proposed, recorded, policyTester })
  await replayLines(eventsOfFile(path), { predictor, grantsOf: readCallers(callers), tally })
  return tally.report()
}
const replayedEvents = (...events: readonly AuditEvent[]) =>
  replayed(file('events.ndjson', events.map((event) => `${JSON.stringify(event)}\n`).join('')))

describe('a replay', () => {
  test('counts a change by route, roles and reason, and names subjects and samples', async () => {
    const report = await replayedEvents(eventOf('alice'), eventOf('bob'), eventOf('bob'))
    expect(report).toMatchObject({ events: 3, changed: 2, same: 1, unknown: 0, malformed: 0 })
    expect(report.changes).toEqual([
      {
        method: 'GET',
        route: '/orders/:id',
        from: { decision: 'allow', reason: 'ok' },
        to: { decision: 'deny', reason: 'permission_missing:orders:read' },
        roles: ['writer'],
        requests: 2,
        clients: 1,
        subjects: 1,
        isLowerBound: false,
        topSubjects: [{ subject: 'bob', requests: 2 }],
        samples: [
          {
            requestId: 'request-1',
            time: '2026-11-20T16:00:00.000Z',
            subject: 'bob',
            client: 'shop',
          },
        ],
      },
    ])
    expect(reportText(report, styleFor(process.stdout))).toContain(
      '2 requests of 1 client that were allowed would be refused: permission_missing:orders:read\n' +
        '  GET /orders/:id, roles writer\n  subjects: bob (2)\n  request request-1 at',
    )
  })

  test.each<[string, AuditEvent, string]>([
    ['a caller without known roles', eventOf('carol'), 'the caller, or its roles'],
    [
      'a caller that was erased',
      { ...eventOf(null), address: ERASED_ADDRESS },
      'the caller, or its roles',
    ],
    [
      'a refusal by a limit',
      eventOf('alice', { decision: 'deny', reason: 'rate_limited:standard' }),
      'stage that refused: rate_limited',
    ],
    [
      'a request without a route',
      eventOf(null, { route: null, decision: 'deny', reason: 'not_found' }),
      'the event has no route',
    ],
    [
      'an event of another policy',
      eventOf('alice', { route: '/items/:id' }),
      'another policy recorded the event',
    ],
  ])('reports %s as unknown', async (_, event, why) => {
    const report = await replayedEvents(event)
    expect(report).toMatchObject({ same: 0, changed: 0, unknown: 1, unknowns: [{ why }] })
  })

  test('decides a request under the routes of its host, and names the host', async () => {
    const row = { method: 'GET', path: '/orders', origin: 'shop', originSpelling: 'exact' } as const
    const policyOf = (permission: string) =>
      definePolicy({
        roles: { reader: ['orders:read'] },
        limits: {},
        origins: origins({ shop: { url: 'https://shop.test' } }),
        routes: [
          { ...row, host: '*.example.com', permission },
          { ...row, permission: 'orders:read' },
        ],
      })
    const [before, after] = [policyOf('orders:read'), policyOf('orders:audit')]
    const tally = createTally(1)
    const predictor = createPredictor({ proposed: after, recorded: before, policyTester })
    const reader = { roles: ['reader'], scopes: [] }
    const event = eventOf('alice', { route: '/orders' })
    const events = [
      { ...event, host: '*.example.com', origin: 'shop' },
      { ...event, origin: 'shop' },
      event,
      { ...event, host: 'no host!' },
    ]
    for (const one of events) tally.add(one, reader, await predictor.predict(one, reader))
    const report = tally.report()
    expect(report).toMatchObject({
      same: 1,
      changes: [{ host: '*.example.com', route: '/orders', requests: 1 }],
      unknowns: [
        { why: 'the path, the host, or the kind of the credential', requests: 1 },
        { why: 'the host of the event is not a host pattern', requests: 1 },
      ],
    })
    expect(reportText(report, styleFor(process.stdout))).toContain('  GET *.example.com/orders')
  })

  test("counts operators' calls and lost events apart, because no route decides them", async () => {
    const call = eventOf('alice', { route: '/-/admin/audit' })
    const lost = eventOf(null, { method: '', route: null, decision: 'error', reason: 'audit_lost' })
    expect(await replayedEvents(call, lost)).toMatchObject({ events: 2, ofGateway: 2, unknown: 0 })
  })

  test('reads many events of many callers, with groups and samples that stay few', async () => {
    const path = join(folder, 'many.ndjson')
    await pipeline(Readable.from(manyEvents(EVENTS)), createWriteStream(path))
    const began = performance.now()
    const report = await replayed(path, 3)
    if (EVENTS > 5_000)
      console.info(
        `${EVENTS} events in ${Math.round(performance.now() - began)} ms, ` +
          `${Math.round(process.memoryUsage().rss / 2 ** 20)} MiB resident`,
      )
    expect(report).toMatchObject({ events: EVENTS, malformed: 0 })
    expect(report.same + report.changed + report.unknown).toBe(EVENTS)
    // One of four requests is a read by a writer, which the second policy refuses.
    expect(report.changed).toBe(EVENTS / 4)
    expect(report.changes.length).toBeLessThan(5)
    for (const { samples } of report.changes) expect(samples).toHaveLength(3)
  }, 300_000)
})

/** Yields lines. Bob reads, Alice reads, an unknown caller reads, and someone reads the status. */
function* manyEvents(count: number): Generator<string> {
  const events = [
    eventOf('bob'),
    eventOf('alice', { route: '/orders' }),
    eventOf('carol'),
    eventOf(null, { route: '/status' }),
  ]
  for (let at = 0; at < count; at++) {
    const event = events[at % events.length] ?? eventOf(null)
    const { actor } = event
    const subject = actor.subject === 'carol' ? `caller-${at}` : actor.subject
    yield `${JSON.stringify({ ...event, requestId: `request-${at}`, actor: { ...actor, subject } })}\n`
  }
}

describe('a line', () => {
  test('is an event, or a row of an export with the same data', () => {
    const event = eventOf('alice', { host: '*.example.com', origin: 'shop' })
    const { requestId, method, route, decision, reason, address, time } = event
    const actor = { issuer: ISSUER, subject: 'alice', client: 'shop' }
    const named = { host: '*.example.com', origin: 'shop' }
    const expected = { requestId, method, route, decision, reason, address, time, actor }
    expect(parseLine(JSON.stringify(event))).toEqual({ ...expected, ...named })
    expect(parseLine(JSON.stringify({ event: rowOf(event) }))).toEqual({ ...expected, ...named })
    // A row of before has no column for them, and a route may have none.
    const { host: _, origin: __, ...row } = rowOf(event)
    expect(parseLine(JSON.stringify({ event: row }))).toEqual(expected)
    expect(parseLine(JSON.stringify({ event: rowOf(eventOf('alice')) }))).toEqual(expected)
    const entry = { seq: 7, text: lineOf(event) }
    expect(parseLine(JSON.stringify({ entry }))).toEqual({ ...expected, ...named })
    const ended = { seq: 7, text: lineOf({ ...event, reason: 'stream_ended:expired' }) }
    expect(parseLine(JSON.stringify({ entry: ended }))).toBe('skipped')
    expect(parseLine('{"block":{"first_seq":1}}')).toBe('skipped')
    expect(parseLine('{"checkpoint":{"seq":1}}')).toBe('skipped')
  })

  test.each([
    '',
    '{',
    'null',
    '[]',
    '{"entry":{"seq":1,"text":"x"}}',
    '{"event":{}}',
    '{"method":"GET"}',
  ])('that is %j is malformed', (line) => {
    expect(parseLine(line)).toBe('malformed')
  })

  test('that is malformed or too long is counted, and the next one is read', async () => {
    const event = JSON.stringify(eventOf('alice'))
    const long = 'x'.repeat(400_000)
    for (const end of ['', '\n', `\n${long}`]) {
      const path = file('broken.ndjson', `${event}\n{\n${long}\n\n${event}${end}`)
      const report = await replayed(path)
      expect(report).toMatchObject({ events: 2, malformed: end === `\n${long}` ? 3 : 2 })
    }
  })
})

test.each([
  ['{', 'is not JSON'],
  ['[{"subject":"alice"}]', 'entry 0.roles is not valid'],
  ['[{"subject":"alice","roles":[],"role":"x"}]', 'entry 0 is not valid'],
])('a file of callers that is %s is refused', (text, message) => {
  expect(() => readCallers(file('wrong.json', text))).toThrow(message)
})

test('the audit trail of the gateway is read page by page, without the requests of this command', async () => {
  const cursors: unknown[] = []
  const gateway = {
    requestIds: new Set(['own']),
    async get<Answer extends object>(_path: string, { cursor }: Record<string, unknown> = {}) {
      cursors.push(cursor)
      if (cursors.length === 2)
        throw new Failure(REFUSED, 'rate_limited', 'too many', { retryAfterSeconds: 0 })
      const own = { ...eventOf('operator'), requestId: 'own' }
      const page = {
        events: [own, eventOf('alice')],
        ...(cursor === undefined && { cursor: 'next' }),
      }
      return page as object as Answer
    },
  }
  const tally = createTally(1)
  const predictor = createPredictor({ proposed, recorded, policyTester })
  const lines = eventsOfGateway(gateway, '2026-11-20T00:00:00Z')
  await replayLines(lines, { predictor, grantsOf: readCallers(callers), tally })
  expect(tally.report()).toMatchObject({ events: 2, same: 2 })
  expect(cursors).toEqual([undefined, 'next', 'next'])
})

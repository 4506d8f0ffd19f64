/** The live tail: who may follow decisions, what it sends, and when it ends. */
import { gzipSync } from 'node:zlib'
import { v7 } from 'uuid'
import { afterAll, beforeAll, expect, test } from 'vitest'
import * as z from 'zod/mini'
import { createRevocations } from '../../../src/access/revocation/redis/revocations.ts'
import { Denied } from '../../../src/errors.ts'
import { createHeldStreams } from '../../../src/features/console/held-streams.ts'
import { createRate } from '../../../src/features/console/overview-stream.ts'
import { createRedisRest } from '../../../src/redis/rest.ts'
import { anEvent } from '../../audit/event.ts'
import { PUBLIC_URL } from '../../harness/gateway.ts'
import { ISSUER } from '../../harness/issuer.ts'
import { startConsole } from './gateway.ts'

const TAIL = '/-/console/decisions/tail'
const OVERVIEW = '/-/console/overview/stream'

let gateway: Awaited<ReturnType<typeof startConsole>>
beforeAll(async () => {
  gateway = await startConsole()
  await store('before')
})
afterAll(() => gateway?.close())

const store = (subject: string, tenant = 'acme') =>
  gateway.store([
    anEvent({
      ...{ id: v7(), requestId: v7(), time: new Date().toISOString() },
      actor: { issuer: ISSUER, subject, client: null, tenant, tokenIdHash: null },
    }),
  ])

const subjects = (name: string, count: number) =>
  gateway.store(
    Array.from({ length: count }, (_, at) =>
      anEvent({
        ...{ id: v7(), requestId: v7(), time: new Date().toISOString() },
        actor: { ...anEvent().actor, subject: `${name}-${at}` },
      }),
    ),
  )

async function follow(cookie: string, lastEventId?: string, path = TAIL) {
  const response = await gateway.isolateFetch(
    new Request(PUBLIC_URL + path, {
      headers: {
        Cookie: cookie,
        'CF-Connecting-IP': '192.0.2.1',
        Accept: 'text/event-stream',
        ...(lastEventId !== undefined && { 'Last-Event-ID': lastEventId }),
        'Sec-Fetch-Mode': 'cors',
        'Sec-Fetch-Site': 'same-origin',
      },
    }),
  )
  const reader = response.body?.getReader()
  let text = ''
  return {
    status: response.status,
    type: response.headers.get('content-type'),
    cookie: response.headers.get('set-cookie'),
    cancel: () => reader?.cancel(),
    /** Reads until the text contains `wanted`, or to the end. */
    async until(wanted: string | undefined) {
      for (;;) {
        if (wanted !== undefined && text.includes(wanted)) return text
        const { done, value } = (await reader?.read()) ?? { done: true, value: undefined }
        if (done) return text
        text += new TextDecoder().decode(value)
      }
    },
  }
}

test('new decisions arrive, those of before do not, and a revocation ends the stream', async () => {
  const tail = await follow(await gateway.cookieOf({ subject: 'opal', roles: ['operator'] }))
  expect([tail.status, tail.type]).toEqual([200, 'text/event-stream'])
  await tail.until(':\n\n')
  await store('after')
  expect(await tail.until('after')).not.toContain('before')
  const rest = createRedisRest({ ...gateway.redis, timeoutMs: 20_000 })
  await createRevocations(rest, Date.now).revokeBefore({
    ...{ kind: 'subject', issuer: ISSUER, value: 'opal' },
    ...{ atSeconds: Date.now() / 1_000 + 1, ttlSeconds: 60 },
  })
  await tail.until(undefined)
})

test('an operator of a tenant follows only decisions of the tenant', async () => {
  const person = { subject: 'tina', roles: ['operator'], tenant: 'acme' }
  const tail = await follow(await gateway.cookieOf(person))
  await tail.until(':\n\n')
  await store('of-globex', 'globex')
  await store('of-acme', 'acme')
  expect(await tail.until('of-acme')).not.toContain('of-globex')
  await tail.cancel()
})

test('a browser that connects again gets the decisions of the gap', async () => {
  const cookie = await gateway.cookieOf({ subject: 'gwen', roles: ['operator'] })
  const first = await follow(cookie)
  const id = /^id: (.+)$/m.exec(await first.until(':\n\n'))?.[1]
  await first.cancel()
  await store('in-the-gap')
  const second = await follow(cookie, id ?? '0')
  expect(await second.until(':\n\n')).toContain('in-the-gap')
  await second.cancel()
  const tooLate = await follow(cookie, '1')
  expect(await tooLate.until(':\n\n')).toContain('event: skipped')
  await tooLate.cancel()
})

test('many decisions arrive, and a remark if some do not', async () => {
  const tail = await follow(await gateway.cookieOf({ subject: 'mona', roles: ['operator'] }))
  await tail.until(':\n\n')
  await subjects('many', 250)
  const text = await tail.until('many-0"')
  for (let at = 0; at < 250; at += 1) expect(text).toContain(`many-${at}"`)
  expect(text).not.toContain('event: skipped')
  await subjects('more', 1_000)
  await tail.until('event: skipped')
  await tail.cancel()
})

test('a visitor has a few tails at a time, and another one after one of them has ended', async () => {
  const cookie = await gateway.cookieOf({ subject: 'fiona', roles: ['operator'] })
  const tails = await Promise.all([follow(cookie), follow(cookie), follow(cookie), follow(cookie)])
  expect(tails.map(({ status }) => status)).toEqual([200, 200, 200, 200])
  const refused = await follow(cookie)
  expect(refused.status).toBe(429)
  const other = await follow(await gateway.cookieOf({ subject: 'otto', roles: ['operator'] }))
  expect(other.status).toBe(200)
  await tails[0]?.cancel()
  const next = await follow(cookie)
  expect(next.status).toBe(200)
  for (const tail of [...tails.slice(1), refused, other, next]) await tail.cancel()
})

test('all visitors together have a bounded number of streams', () => {
  let nowMs = 0
  const hold = createHeldStreams(() => nowMs)
  for (let at = 0; at < 64; at += 1) hold(`visitor ${at}`, 1_000)
  expect(() => hold('one more', 1_000)).toThrow(Denied)
  nowMs = 1_000
  expect(hold('one more', 2_000)).toBeTypeOf('function')
})

test('the overview sends figures of all gateways, without script or text of callers as markup', async () => {
  const cookie = await gateway.cookieOf({ subject: 'ivy', roles: ['operator'] })
  const hostile = '<img src=x onerror=alert(1)>\u202e'
  await gateway.store([
    anEvent({
      ...{ id: v7(), requestId: v7(), time: new Date().toISOString() },
      ...{ route: `/${hostile}`, reason: hostile, decision: 'deny' },
    }),
  ])
  const stream = await follow(cookie, undefined, `${OVERVIEW}?last=15m`)
  expect([stream.status, stream.type]).toEqual([200, 'text/event-stream'])
  const text = await stream.until('"\n\n')
  const markup = z.parse(z.string(), JSON.parse(/^data: (.+)$/m.exec(text)?.[1] ?? ''))
  for (const part of ['Per second', 'Refusals by reason', 'p99', 'Redis', 'Audit queue'])
    expect(markup).toContain(part)
  expect(markup).toContain('&lt;img src=x onerror=alert(1)&gt;\\u{202e}')
  expect(markup).not.toMatch(/<img|<script|\u202e/)
  await stream.cancel()
})

test('the stream of the overview ends with the session of its visitor', async () => {
  const cookie = await gateway.cookieOf({ subject: 'sid', roles: ['operator'] })
  const stream = await follow(cookie, undefined, OVERVIEW)
  await stream.until('"\n\n')
  const out = await gateway.visit(cookie, '/oauth/sign-out', { form: {} })
  expect(out.status).toBeLessThan(400)
  await stream.until(undefined)
  expect((await follow(cookie, undefined, OVERVIEW)).status).toBe(401)
})

test('an operator of a tenant sees figures only of the tenant', async () => {
  const person = { subject: 'tom', roles: ['operator'], tenant: 'globex' }
  const stream = await follow(await gateway.cookieOf(person), undefined, `${OVERVIEW}?last=7d`)
  await subjects('of-acme', 1)
  const text = await stream.until('"\n\n')
  expect(text).not.toContain('State of all gateways')
  expect(text).toMatch(/<dt>Requests<\/dt><dd>\d<\/dd>/)
  await stream.cancel()
})

test.each([
  ['no count yet', [[0, 5]], undefined],
  [
    'a minute',
    [
      [0, 5],
      [10_000, 15],
      [60_000, 65],
    ],
    1,
  ],
  [
    'older counts left out',
    [
      [0, 0],
      [50_000, 5_000],
      [80_000, 5_030],
    ],
    1,
  ],
  [
    'deleted counters',
    [
      [0, 90],
      [10_000, 3],
    ],
    undefined,
  ],
] as const)('the rate of a counter: %s', (_what, samples, expected) => {
  const rate = createRate()
  expect(samples.map(([ms, count]) => rate(ms, count)).at(-1)).toBe(expected)
})

test('what a browser loads by itself does not keep a session alive', async () => {
  const idle = () => gateway.cookieOf({ roles: ['operator'], idleForSeconds: 400 })
  const pages = ['/-/console', '/-/console?live=1', '/-/console?live=1&last=1h']
  const renewed: (string | null)[] = []
  for (const path of pages) {
    const { status, headers } = await gateway.visit(await idle(), path)
    expect(status).toBe(200)
    renewed.push(headers.get('set-cookie'))
  }
  const tail = await follow(await idle())
  expect(tail.status).toBe(200)
  await tail.cancel()
  const overview = await follow(await idle(), undefined, OVERVIEW)
  expect(overview.status).toBe(200)
  await overview.cancel()
  expect([...renewed, tail.cookie, overview.cookie]).toEqual([
    ...[expect.any(String), null, null, null, null],
  ])
})

test('a role that only opens the console follows nothing', async () => {
  const viewer = await gateway.cookieOf({ subject: 'vera', roles: ['viewer'] })
  expect((await follow(viewer)).status).toBe(403)
  expect((await follow(viewer, undefined, OVERVIEW)).status).toBe(403)
  expect((await gateway.visit(viewer, '/-/console')).text).not.toContain('<script')
  const reader = await gateway.cookieOf({ subject: 'rita', roles: ['reader'] })
  for (const [cookie, status] of [
    [reader, 403],
    ['', 401],
  ] as const)
    for (const path of [TAIL, OVERVIEW])
      expect((await follow(cookie, undefined, path)).status, path).toBe(status)
})

test('the browser loads one script of the gateway, which runs no script of others', async () => {
  const operator = await gateway.cookieOf({ roles: ['operator'] })
  const { headers, text } = await gateway.visit(operator, '/-/console/script.js')
  expect(headers.get('content-type')).toMatch(/^text\/javascript/)
  expect(text).not.toMatch(/innerHTML|insertAdjacent|document\.write|eval|Function/)
  const page = await gateway.visit(operator, '/-/console/decisions')
  expect(gzipSync(text).length + gzipSync(page.text).length).toBeLessThan(60 * 1_024)
  expect(page.headers.get('content-security-policy')).toContain(
    `script-src ${PUBLIC_URL}/-/console/script.js; connect-src ${PUBLIC_URL}${TAIL}`,
  )
  const overview = await gateway.visit(operator, '/-/console')
  expect(overview.headers.get('content-security-policy')).toContain(
    `script-src ${PUBLIC_URL}/-/console/script.js; connect-src ${PUBLIC_URL}${OVERVIEW}`,
  )
})

test('the overview has the state of all gateways', async () => {
  const operator = await gateway.cookieOf({ roles: ['operator'] })
  const { text } = await gateway.visit(operator, '/-/console')
  for (const name of [
    'Running instances',
    'Redis',
    'Issuers',
    'Origins',
    'Audit queue',
    'Newest event',
  ])
    expect(text).toContain(`<dt>${name}</dt>`)
})

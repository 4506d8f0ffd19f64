/**
 * Failing policy decision points: an unauthorized caller is never admitted, and an authorized one
 * is admitted or gets 503.
 */
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type FaultProxy, startFaultProxy } from '../../../../dev/fault-proxy/proxy.ts'
import { DEFAULT_FAILURES, FIRST_PERIOD_MS } from '../../../../src/isolate/circuit-breaker.ts'
import { startHttpServer, type TestServer } from '../../../harness/http-server.ts'
import { FAULTS, RUBBISH } from '../../../isolate/rubbish.ts'
import { isolate, KINDS, SHORT_MS } from './adapters.ts'
import { type Behavior, decisionOf, query, startAuthority, type TestAuthority } from './servers.ts'

const ALLOWED = query('doc:1#viewer@user:anne')
const DENIED = query('doc:1#viewer@user:mallory')

let server: TestAuthority
let proxy: FaultProxy
/** A server that allows everything; no test may reach it. */
let elsewhere: TestServer
let redirected = 0
beforeAll(async () => {
  server = await startAuthority({ none: ['doc:1#viewer@user:anne'], acme: [] })
  proxy = await startFaultProxy({
    target: { host: '127.0.0.1', port: Number(new URL(server.url).port) },
  })
  elsewhere = await startHttpServer((_, response) => {
    redirected++
    response.end('{"allowed":true,"decision":true}')
  })
})
afterAll(async () => {
  await proxy.close()
  await server.close()
  await elsewhere.close()
})
beforeEach(async () => {
  await proxy.set({ kind: 'none' })
  server.behavior = undefined
  server.requests.length = 0
})

const respondingWith =
  (body: string | Uint8Array, status = 200, headers: Record<string, string> = {}): Behavior =>
  (response) =>
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body)
const YES = '{"allowed":true,"decision":true}'
const PADDING = 'x'.repeat(1_024)

const dripping: Behavior = (response) => {
  response.writeHead(200)
  response.write(YES.slice(0, -1))
  const timer = setInterval(() => response.write(' '), 20)
  response.once('close', () => clearInterval(timer))
}

const endless: Behavior = (response) => {
  response.writeHead(200)
  response.write('{"padding":"')
  const more = () => {
    while (!response.destroyed) if (!response.write(PADDING)) return response.once('drain', more)
    return response
  }
  more()
}

/** Responses that resemble "allowed" and must not be accepted. */
const NO_ANSWERS: readonly (readonly [name: string, behavior: Behavior, fault: string])[] = [
  ['"true" as text', respondingWith('{"allowed":"true","decision":"true"}'), 'malformed'],
  ['1 for true', respondingWith('{"allowed":1,"decision":1}'), 'malformed'],
  ['null for both', respondingWith('{"allowed":null,"decision":null}'), 'malformed'],
  ['null', respondingWith('null'), 'malformed'],
  ['only true', respondingWith('true'), 'malformed'],
  ['an array', respondingWith('[true]'), 'malformed'],
  ['an array of a response', respondingWith(`[${YES}]`), 'malformed'],
  ['an empty object', respondingWith('{}'), 'malformed'],
  ['the field nested in another field', respondingWith(`{"result":${YES}}`), 'malformed'],
  ['other letter case', respondingWith('{"Allowed":true,"Decision":true}'), 'malformed'],
  [
    'the field twice',
    respondingWith('{"allowed":true,"decision":true,"allowed":false,"decision":false}'),
    'malformed',
  ],
  ['a prototype', respondingWith('{"__proto__":{"allowed":true,"decision":true}}'), 'malformed'],
  ['two responses', respondingWith(YES + YES), 'malformed'],
  ['a response with a suffix', respondingWith(`${YES}x`), 'malformed'],
  ['half a response', respondingWith(YES.slice(0, -1)), 'malformed'],
  ['a comment', respondingWith(`/**/${YES}`), 'malformed'],
  ['a byte order mark', respondingWith(`\ufeff${YES}`), 'malformed'],
  ['UTF-16', respondingWith(Buffer.from(YES, 'utf16le')), 'malformed'],
  ['invalid UTF-8', respondingWith(new Uint8Array([0x7b, 0xff, 0x7d])), 'malformed'],
  ['nothing', respondingWith(''), 'malformed'],
  ['an HTML page', respondingWith('<html>yes</html>'), 'malformed'],
  ['too deep nesting', respondingWith(`{"a":${'['.repeat(50_000)}`), 'malformed'],
  [
    'a long response',
    respondingWith(`{"allowed":true,"decision":true,"x":"${PADDING.repeat(65)}"}`),
    'malformed',
  ],
  ['a response without an end', endless, 'malformed'],
  [
    'a compressed bomb',
    respondingWith(
      gzipSync(`{"allowed":true,"decision":true,"x":"${PADDING.repeat(20_000)}"}`),
      200,
      {
        'content-encoding': 'gzip',
      },
    ),
    'malformed',
  ],
  ['allowed with 201', respondingWith(YES, 201), 'refused'],
  ['allowed with 203', respondingWith(YES, 203), 'refused'],
  ['no content', (response) => response.writeHead(204).end(), 'refused'],
  ['allowed with 400', respondingWith(YES, 400), 'refused'],
  ['allowed with 401', respondingWith(YES, 401), 'refused'],
  ['allowed with 403', respondingWith(YES, 403), 'refused'],
  ['allowed with 404', respondingWith(YES, 404), 'refused'],
  ['allowed with 429', respondingWith(YES, 429, { 'retry-after': '1' }), 'refused'],
  ['allowed with 500', respondingWith(YES, 500), 'refused'],
  ['allowed with 503', respondingWith(YES, 503), 'refused'],
  ['another status', respondingWith('{"code":"validation_error"}', 400), 'refused'],
  ['silence', () => {}, 'timeout'],
  ['headers, then silence', (response) => response.writeHead(200).flushHeaders(), 'timeout'],
  ['a response that drips', dripping, 'timeout'],
  ['a closed connection', (response) => response.destroy(), 'unreachable'],
  [
    'a truncated response',
    (response) => {
      response.writeHead(200, { 'content-length': '100' })
      response.write(YES)
      setTimeout(() => response.destroy(), 10)
    },
    'unreachable',
  ],
]

const deadlineFor = (fault: string) => (fault === 'timeout' ? { timeoutMs: SHORT_MS } : {})

describe.each(KINDS)('%s that answers with', (kind) => {
  test.each(NO_ANSWERS)('%s makes no decision [R06]', async (_, behavior, fault) => {
    server.behavior = behavior
    for (const question of [ALLOWED, DENIED])
      expect(
        await decisionOf(isolate(kind, server.url, deadlineFor(fault)).authority, question),
      ).toBe(`authority:${fault}`)
  })

  test.each([301, 302, 303, 307, 308])('a redirect (%d) is not followed [R06]', async (status) => {
    server.behavior = respondingWith(YES, status, { location: `${elsewhere.url}/stores/x/check` })
    expect(await decisionOf(isolate(kind, server.url).authority, ALLOWED)).toBe('authority:refused')
    expect(redirected).toBe(0)
  })
})

describe.each(KINDS)('%s behind a faulty connection', (kind) => {
  test.each([...RUBBISH, ...FAULTS])('%s admits no unauthorized caller [R06]', async (_, fault) => {
    await proxy.set(fault)
    const { authority } = isolate(kind, proxy.url, { timeoutMs: SHORT_MS })
    const answers = await Promise.all([
      ...Array.from({ length: 3 }, () => decisionOf(authority, DENIED)),
      ...Array.from({ length: 3 }, () => decisionOf(authority, { ...ALLOWED, tenant: 'acme' })),
    ])
    for (const answer of answers)
      expect(answer).toMatch(/^(?:denied|authority:\w+(?:, short-circuited)?)$/)
    // An authorized caller is allowed, or the dependency is reported as failed.
    expect(await decisionOf(authority, ALLOWED)).toMatch(
      /^(?:allowed|authority:\w+(?:, short-circuited)?)$/,
    )
  })

  test('a closed port and an unknown host name are outages [R06]', async () => {
    for (const url of ['http://127.0.0.1:1', 'http://nowhere.invalid'])
      expect(await decisionOf(isolate(kind, url).authority, ALLOWED)).toBe('authority:unreachable')
  })
})

describe.each(KINDS)('the breaker of %s', (kind) => {
  const fail = async ({ authority }: ReturnType<typeof isolate>, fault: string) => {
    for (let count = 0; count < DEFAULT_FAILURES; count++)
      expect(await decisionOf(authority, ALLOWED)).toBe(`authority:${fault}`)
  }

  test.each([
    ['silence', () => {}, 'timeout'],
    ['errors', respondingWith('', 500), 'refused'],
    ['a token that it rejects', respondingWith('', 401), 'refused'],
    ['rubbish', respondingWith('{}'), 'malformed'],
  ] as const)(
    'opens after five times %s, and closes again later [R06]',
    async (_, behavior, fault) => {
      const one = isolate(kind, server.url, deadlineFor(fault))
      server.behavior = behavior
      await fail(one, fault)
      const before = server.requests.length
      for (let count = 0; count < 20; count++)
        expect(await decisionOf(one.authority, ALLOWED)).toBe(`authority:${fault}, short-circuited`)
      expect(server.requests.length).toBe(before)
      expect(one.breakers.list.map(({ name, state }) => [name, state()])).toEqual([
        ['authority', 'open'],
      ])
      server.behavior = undefined
      one.pass(FIRST_PERIOD_MS)
      expect(await decisionOf(one.authority, ALLOWED)).toBe('allowed')
      expect(one.breakers.list[0]?.state()).toBe('closed')
    },
  )

  test('is not opened by queries that the server refuses', async () => {
    const one = isolate(kind, server.url)
    server.behavior = respondingWith('{"code":"validation_error"}', 400)
    for (let round = 0; round < 4; round++) await fail(one, 'refused')
    expect(server.requests).toHaveLength(4 * DEFAULT_FAILURES)
    server.behavior = undefined
    expect(await decisionOf(one.authority, ALLOWED)).toBe('allowed')
  })

  test('allows one retry on a connection that closes without a response, and no more', async () => {
    const one = isolate(kind, server.url)
    server.behavior = (response) => {
      server.behavior = undefined
      response.destroy()
    }
    expect(await decisionOf(one.authority, ALLOWED)).toBe('allowed')
    expect(server.requests).toHaveLength(2)
    server.requests.length = 0
    server.behavior = (response) => response.destroy()
    expect(await decisionOf(one.authority, ALLOWED)).toBe('authority:unreachable')
    expect(server.requests).toHaveLength(2)
  })
})

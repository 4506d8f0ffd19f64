/**
 * Failing policy decision points: an unauthorized caller is never admitted, and an authorized one
 * is admitted or gets 503.
 */
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type FaultProxy, startFaultProxy } from '../../../dev/fault-proxy/proxy.ts'
import { DEFAULT_FAILURES, FIRST_PERIOD_MS } from '../../../src/isolate/circuit-breaker.ts'
import { FAULTS, RUBBISH } from '../../faults/rubbish.ts'
import { startHttpServer, type TestServer } from '../../harness/http-server.ts'
import { isolate, KINDS } from './adapters.ts'
import { type Behaviour, decisionOf, query, startAuthority, type TestAuthority } from './servers.ts'

const ALLOWED = query('doc:1#viewer@user:anne')
const DENIED = query('doc:1#viewer@user:mallory')

let server: TestAuthority
let proxy: FaultProxy
/** A server that allows everything; no test may reach it. */
let elsewhere: TestServer
let askedElsewhere = 0
beforeAll(async () => {
  server = await startAuthority({ none: ['doc:1#viewer@user:anne'], acme: [] })
  proxy = await startFaultProxy({
    target: { host: '127.0.0.1', port: Number(new URL(server.url).port) },
  })
  elsewhere = await startHttpServer((_, response) => {
    askedElsewhere++
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
  server.behaviour = undefined
  server.asked.length = 0
})

const saying =
  (body: string | Uint8Array, status = 200, headers: Record<string, string> = {}): Behaviour =>
  (response) =>
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body)
const YES = '{"allowed":true,"decision":true}'
const PADDING = 'x'.repeat(1_024)

const dripping: Behaviour = (response) => {
  response.writeHead(200)
  response.write(YES.slice(0, -1))
  const timer = setInterval(() => response.write(' '), 20)
  response.once('close', () => clearInterval(timer))
}

const endless: Behaviour = (response) => {
  response.writeHead(200)
  response.write('{"padding":"')
  const more = () => {
    while (!response.destroyed) if (!response.write(PADDING)) return response.once('drain', more)
    return response
  }
  more()
}

/** Responses that resemble "allowed" and must not be accepted. */
const NO_ANSWERS: readonly (readonly [name: string, behaviour: Behaviour, fault: string])[] = [
  ['"true" as text', saying('{"allowed":"true","decision":"true"}'), 'malformed'],
  ['1 for true', saying('{"allowed":1,"decision":1}'), 'malformed'],
  ['null for both', saying('{"allowed":null,"decision":null}'), 'malformed'],
  ['null', saying('null'), 'malformed'],
  ['only true', saying('true'), 'malformed'],
  ['an array', saying('[true]'), 'malformed'],
  ['an array of a response', saying(`[${YES}]`), 'malformed'],
  ['an empty object', saying('{}'), 'malformed'],
  ['the field nested in another field', saying(`{"result":${YES}}`), 'malformed'],
  ['other letter case', saying('{"Allowed":true,"Decision":true}'), 'malformed'],
  [
    'the field twice',
    saying('{"allowed":true,"decision":true,"allowed":false,"decision":false}'),
    'malformed',
  ],
  ['a prototype', saying('{"__proto__":{"allowed":true,"decision":true}}'), 'malformed'],
  ['two responses', saying(YES + YES), 'malformed'],
  ['a response with a suffix', saying(`${YES}x`), 'malformed'],
  ['half a response', saying(YES.slice(0, -1)), 'malformed'],
  ['a comment', saying(`/**/${YES}`), 'malformed'],
  ['a byte order mark', saying(`\ufeff${YES}`), 'malformed'],
  ['UTF-16', saying(Buffer.from(YES, 'utf16le')), 'malformed'],
  ['invalid UTF-8', saying(new Uint8Array([0x7b, 0xff, 0x7d])), 'malformed'],
  ['nothing', saying(''), 'malformed'],
  ['an HTML page', saying('<html>yes</html>'), 'malformed'],
  ['too deep nesting', saying(`{"a":${'['.repeat(50_000)}`), 'malformed'],
  [
    'a long response',
    saying(`{"allowed":true,"decision":true,"x":"${PADDING.repeat(65)}"}`),
    'malformed',
  ],
  ['a response without an end', endless, 'malformed'],
  [
    'a compressed bomb',
    saying(gzipSync(`{"allowed":true,"decision":true,"x":"${PADDING.repeat(20_000)}"}`), 200, {
      'content-encoding': 'gzip',
    }),
    'malformed',
  ],
  ['allowed with 201', saying(YES, 201), 'refused'],
  ['allowed with 203', saying(YES, 203), 'refused'],
  ['no content', (response) => response.writeHead(204).end(), 'refused'],
  ['allowed with 400', saying(YES, 400), 'refused'],
  ['allowed with 401', saying(YES, 401), 'refused'],
  ['allowed with 403', saying(YES, 403), 'refused'],
  ['allowed with 404', saying(YES, 404), 'refused'],
  ['allowed with 429', saying(YES, 429, { 'retry-after': '1' }), 'refused'],
  ['allowed with 500', saying(YES, 500), 'refused'],
  ['allowed with 503', saying(YES, 503), 'refused'],
  ['another status', saying('{"code":"validation_error"}', 400), 'refused'],
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

describe.each(KINDS)('%s that answers with', (kind) => {
  test.each(NO_ANSWERS)('R06: %s makes no decision', async (_, behaviour, fault) => {
    server.behaviour = behaviour
    for (const question of [ALLOWED, DENIED])
      expect(await decisionOf(isolate(kind, server.url).authority, question)).toBe(
        `authority:${fault}`,
      )
  })

  test.each([301, 302, 303, 307, 308])('R06: a redirect (%d) is not followed', async (status) => {
    server.behaviour = saying(YES, status, { location: `${elsewhere.url}/stores/x/check` })
    expect(await decisionOf(isolate(kind, server.url).authority, ALLOWED)).toBe('authority:refused')
    expect(askedElsewhere).toBe(0)
  })
})

describe.each(KINDS)('%s behind a faulty connection', (kind) => {
  test.each([...RUBBISH, ...FAULTS])('R06: %s admits no unauthorized caller', async (_, fault) => {
    await proxy.set(fault)
    const { authority } = isolate(kind, proxy.url)
    const answers = await Promise.all([
      ...Array.from({ length: 3 }, () => decisionOf(authority, DENIED)),
      ...Array.from({ length: 3 }, () => decisionOf(authority, { ...ALLOWED, tenant: 'acme' })),
    ])
    for (const answer of answers) expect(answer).toMatch(/^(?:denied|authority:\w+(?:, unasked)?)$/)
    // An authorized caller is allowed, or the dependency is reported as failed.
    expect(await decisionOf(authority, ALLOWED)).toMatch(
      /^(?:allowed|authority:\w+(?:, unasked)?)$/,
    )
  })

  test('R06: a closed port and an unknown host name are outages', async () => {
    for (const url of ['http://127.0.0.1:1', 'http://nowhere.invalid'])
      expect(await decisionOf(isolate(kind, url, { timeoutMs: 2_000 }).authority, ALLOWED)).toBe(
        'authority:unreachable',
      )
  })
})

describe.each(KINDS)('the breaker of %s', (kind) => {
  const fail = async ({ authority }: ReturnType<typeof isolate>, fault: string) => {
    for (let count = 0; count < DEFAULT_FAILURES; count++)
      expect(await decisionOf(authority, ALLOWED)).toBe(`authority:${fault}`)
  }

  test.each([
    ['silence', () => {}, 'timeout'],
    ['errors', saying('', 500), 'refused'],
    ['a token that it rejects', saying('', 401), 'refused'],
    ['rubbish', saying('{}'), 'malformed'],
  ] as const)(
    'R06: opens after five times %s, and closes again later',
    async (_, behaviour, fault) => {
      const one = isolate(kind, server.url)
      server.behaviour = behaviour
      await fail(one, fault)
      const before = server.asked.length
      for (let count = 0; count < 20; count++)
        expect(await decisionOf(one.authority, ALLOWED)).toBe(`authority:${fault}, unasked`)
      expect(server.asked.length).toBe(before)
      expect(one.breakers.list.map(({ name, state }) => [name, state()])).toEqual([
        ['authority', 'open'],
      ])
      server.behaviour = undefined
      one.pass(FIRST_PERIOD_MS)
      expect(await decisionOf(one.authority, ALLOWED)).toBe('allowed')
      expect(one.breakers.list[0]?.state()).toBe('closed')
    },
  )

  test('is not opened by a caller whose query the server refuses', async () => {
    const one = isolate(kind, server.url)
    server.behaviour = saying('{"code":"validation_error"}', 400)
    for (let round = 0; round < 4; round++) await fail(one, 'refused')
    expect(server.asked).toHaveLength(4 * DEFAULT_FAILURES)
    server.behaviour = undefined
    expect(await decisionOf(one.authority, ALLOWED)).toBe('allowed')
  })

  test('allows one retry on a connection that closes without a response, and no more', async () => {
    const one = isolate(kind, server.url)
    server.behaviour = (response) => {
      server.behaviour = undefined
      response.destroy()
    }
    expect(await decisionOf(one.authority, ALLOWED)).toBe('allowed')
    expect(server.asked).toHaveLength(2)
    server.asked.length = 0
    server.behaviour = (response) => response.destroy()
    expect(await decisionOf(one.authority, ALLOWED)).toBe('authority:unreachable')
    expect(server.asked).toHaveLength(2)
  })
})

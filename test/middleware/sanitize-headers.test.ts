import fc from 'fast-check'
import { Hono } from 'hono'
import { describe, expect, test } from 'vitest'
import { Denied } from '../../src/errors.ts'
import type { ForwardHeadersVariables } from '../../src/middleware/context.ts'
import { forwardHeadersOf } from '../../src/middleware/context.ts'
import {
  type SanitizeHeadersOptions,
  sanitizeHeaders,
} from '../../src/middleware/sanitize-headers.ts'
import { allOf, ORDINARY_HEADERS, spellingsOf, TRUSTED_HEADERS } from './header-names.ts'

function echo(rules?: SanitizeHeadersOptions) {
  let reached = 0
  const app = new Hono<{ Variables: ForwardHeadersVariables }>()
  app.onError((error, c) =>
    error instanceof Denied ? c.json(error.denial, 400) : c.text('defect', 500),
  )
  app.use(sanitizeHeaders(rules))
  app.all('*', (c) => {
    reached++
    return c.json([...forwardHeadersOf(c)])
  })
  return { app, reached: () => reached }
}

async function forwarded(
  headers: [string, string][],
  rules?: SanitizeHeadersOptions,
): Promise<Map<string, string>> {
  const response = await echo(rules).app.request('/', { headers })
  expect(response.status).toBe(200)
  return new Map((await response.json()) as [string, string][])
}

const RULES = { stripHeaders: ['X-Tenant-*', 'X-Session-Id'], keepHeaders: ['X-User-Id'] }

describe('sanitizeHeaders', () => {
  describe.each(Object.entries(TRUSTED_HEADERS))(
    'headers that servers trust from a proxy about %s [S54, S56, S73]',
    (_topic, names) => {
      test.each([...names])('%s reaches no origin, in any spelling', async (name) => {
        const passed = await forwarded([
          ...spellingsOf(name).map((spelling): [string, string] => [spelling, 'forged']),
          [name, 'forged'],
          ['Accept', 'text/plain'],
        ])
        expect([...passed]).toEqual([['accept', 'text/plain']])
      })
    },
  )

  test('no other spelling of a trusted name reaches the origin [S73]', async () => {
    const trusted = allOf(TRUSTED_HEADERS)
    const respelled = fc
      .tuple(
        fc.constantFrom(...trusted),
        fc.array(fc.constantFrom('-', '_', '.'), { minLength: 8, maxLength: 8 }),
        fc.bigInt({ min: 0n, max: (1n << 64n) - 1n }),
        fc.array(fc.constantFrom('HTTP-', 'Grpc-Metadata-', 'grpcgateway-'), { maxLength: 2 }),
      )
      .map(([name, separators, upper, prefixes]) => {
        let at = 0
        const separated = name.replaceAll('-', () => separators[at++ % separators.length] ?? '-')
        const letters = [...separated].map((letter, index) =>
          (upper >> BigInt(index)) & 1n ? letter.toUpperCase() : letter.toLowerCase(),
        )
        return prefixes.join('') + letters.join('')
      })
    await fc.assert(
      fc.asyncProperty(respelled, async (name) => {
        expect([...(await forwarded([[name, 'forged']]))]).toEqual([])
      }),
      { numRuns: 2_000 },
    )
  })

  test.each(Object.entries(ORDINARY_HEADERS))(
    'every header of %s reaches the origin unchanged [S73]',
    async (_topic, names) => {
      const sent = names.map((name): [string, string] => [name, `value of ${name}`])
      const passed = await forwarded(sent)
      expect(Object.fromEntries(passed)).toEqual(
        Object.fromEntries(sent.map(([name, value]) => [name.toLowerCase(), value])),
      )
    },
  )

  test("the policy's names are removed by exact name and by prefix, or kept [S73]", async () => {
    const headers: [string, string][] = [
      ['X-Tenant-Id', '1'],
      ['x-tenant-', '2'],
      ['X-Session-Id', '3'],
      ['X-Session-Id-2', '4'],
      ['X-Tenant', '5'],
      ['X-User-Id', '6'],
      ['X-User-Id-2', '7'],
      ['X_User_Id', '8'],
      ['Grpc-Metadata-X-User-Id', '9'],
    ]
    const passed = await forwarded(headers, RULES)
    expect([...passed]).toEqual([
      ['x-session-id-2', '4'],
      ['x-tenant', '5'],
      ['x-user-id', '6'],
    ])
  })

  test('headers named in Connection end at this hop, even if the policy keeps them [S55]', async () => {
    const headers: [string, string][] = [
      ['Connection', 'X-User-Id'],
      ['X-User-Id', '1'],
    ]
    expect([...(await forwarded(headers, RULES))]).toEqual([])
  })

  test('a name of more than 256 characters reaches no origin [S21]', async () => {
    const [longest, longer] = ['a'.repeat(256), 'a'.repeat(257)]
    const passed = await forwarded([
      [longest, '1'],
      [longer, '2'],
    ])
    expect([...passed.keys()]).toEqual([longest])
  })

  test('the decision on a name is the same after thousands of other names [S73]', async () => {
    const { app } = echo()
    const send = async (headers: [string, string][]) =>
      (await (await app.request('/', { headers })).json()) as [string, string][]
    const two: [string, string][] = [
      ['X-User-Id', 'forged'],
      ['X-Custom', '1'],
    ]
    expect(await send(two)).toEqual([['x-custom', '1']])
    for (let round = 0; round < 6; round++)
      expect(
        await send(Array.from({ length: 400 }, (_, at) => [`x-${round}-${at}`, '1'])),
      ).toHaveLength(400)
    expect(await send(two)).toEqual([['x-custom', '1']])
  })

  test.each([
    'Connection',
    'Keep-Alive',
    'HTTP2-Settings',
    'Host',
    'X-Request-Id',
    'tracestate',
    'traceparent',
    'Proxy-Authorization',
    'Proxy-Connection',
    'TE',
    'Trailer',
    'Transfer-Encoding',
    'Upgrade',
    'Expect',
    'Content-Length',
  ])('%s ends at this hop [S55]', async (name) => {
    expect([...(await forwarded([[name, 'x']]))]).toEqual([])
  })

  test('headers named in Connection end at this hop, in any case and spacing [S55]', async () => {
    const passed = await forwarded([
      ['Connection', 'close, X-Hop ,x-user-id'],
      ['Connection', 'authorization,, b@d, X_Odd'],
      ['X-Hop', '1'],
      ['X-User-Id', '1'],
      ['X-Kept', '1'],
    ])
    expect([...passed]).toEqual([['x-kept', '1']])
  })

  test('credentials reach only routes that request them [S59]', async () => {
    expect([
      ...(await forwarded([
        ['Authorization', 'Bearer a'],
        ['DPoP', 'a.b.c'],
        ['Cookie', 'sid=1'],
      ])),
    ]).toEqual([])
  })

  test('headers for content negotiation, ranges and conditions are forwarded unchanged [R26]', async () => {
    const kept: [string, string][] = [
      ['accept', 'application/json'],
      ['accept-encoding', 'gzip, br'],
      ['content-encoding', 'gzip'],
      ['content-type', 'application/json; charset="utf-8"'],
      ['if-none-match', '"a", W/"b"'],
      ['if-range', '"a"'],
      ['last-event-id', '7'],
      ['range', 'bytes=0-9'],
      ['user-agent', 'kube-probe/1.30'],
      ['x-custom', 'v'],
    ]
    expect([...(await forwarded(kept))]).toEqual(kept)
  })

  test('the request itself is not modified', async () => {
    const app = new Hono()
    app.use(sanitizeHeaders())
    app.get('/', (c) => c.text(c.req.header('Authorization') ?? 'gone'))
    const response = await app.request('/', { headers: { Authorization: 'Bearer a' } })
    expect(await response.text()).toBe('Bearer a')
  })

  test.each([
    ['501 headers', Array.from({ length: 501 }, (_, at) => [`x-${at}`, '1']), 'header_count'],
    ['128 KB of headers', [['x-large', 'a'.repeat(131_072)]], 'header_bytes'],
  ])('%s are refused and reach no handler [S21]', async (_, headers, check) => {
    const { app, reached } = echo()
    const response = await app.request('/', { headers: headers as [string, string][] })
    expect(response.status).toBe(400)
    expect(await response.json()).toEqual({ code: 'malformed_request', check })
    expect(reached()).toBe(0)
  })
})

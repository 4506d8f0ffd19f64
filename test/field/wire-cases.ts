/** Cases about bytes that pass the gateway: interim responses, trailers, targets, and fields that are not ASCII. */
import { expect } from 'vitest'
import type { Check, FieldCase } from './case.ts'
import { EVERY_RUNTIME, NODE_ONLY } from './runtimes.ts'

const HOST = 'Host: gateway.test'
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

const tried = (
  symptom: string,
  sources: string,
  expected: string,
  run: Check['run'],
  runtimes: FieldCase['runtimes'] = EVERY_RUNTIME,
): FieldCase => ({
  symptom,
  sources: sources.split(', '),
  expected,
  runtimes,
  proof: { run },
})

/** Each is what an origin sends, and the body that a client reads. */
const RESPONSES = [
  [`HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n${OK}`, 'ok'],
  [`HTTP/1.1 102 Processing\r\n\r\n${OK}`, 'ok'],
  [
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n' +
      '5\r\nhello\r\n5\r\nworld\r\n0\r\nX-Sum: 1\r\nSet-Cookie: a=b\r\n\r\n',
    'helloworld',
  ],
] as const

/** Targets that the origin must get byte for byte. */
const TARGETS = [
  '/open/x?param=https://h.example/r%7C12|3',
  '/open/x?u=https%3A%2F%2Fh.example%3Fa%3D1%26b&c=%26+%2B%25',
  '/open/x?a=1&a=2&b&=c&&',
  '/open/x?',
  '/open/a%20b/%E4%BD%A0?q=%00[1]{b}',
  '/open/!$&()*,=:@+a~',
]

/** Heads of requests that no pipeline sees, and the statuses of their refusals. */
const UNREADABLE = [
  [400, ['GET /open/x HTTP/1.1', 'X-Other: no host']],
  [400, ['FOO /open/x HTTP/1.1', HOST]],
  [400, ['GET /open/x HTTP/1.1', HOST, 'X-Space : a']],
  [400, ['GET /open/x HTTP/1.1', HOST, 'X-Folded: a', ' b']],
  [417, ['PUT /open/x HTTP/1.1', HOST, 'Expect: 200-ok', 'Content-Length: 0']],
  [431, ['GET /open/x HTTP/1.1', HOST, `X-Large: ${'x'.repeat(70_000)}`]],
  [
    413,
    ['POST /open/x HTTP/1.1', HOST, 'Transfer-Encoding: chunked'],
    `2;a=${'x'.repeat(20_000)}\r\nok\r\n0\r\n\r\n`,
  ],
] as const

/** A semicolon, bytes that are not UTF-8, and a `%` that encodes nothing. */
const UNCLEAR_QUERIES = ['a=1;b=2', 'b;a=1', ';', 'a=%ff', 'a=%C0%AE', 'a=100%', 'a=%zz']

export const wireCases: readonly FieldCase[] = [
  tried(
    'an interim response, or trailers, of the origin cut its response or end the process',
    'nginx/nginx#1427, nginx/nginx#1241, mitmproxy/mitmproxy#2229, freeunitorg/freeunit#106, sozu-proxy/sozu#899, chimurai/http-proxy-middleware#1249',
    'the whole final response, without trailers (RFC 9110 sections 6.5.1 and 15.2)',
    async ({ raw, answerWith }) => {
      for (const [text, expected] of RESPONSES) {
        answerWith((_, response) => void response.socket?.end(text))
        const { status, headers, body, aborted } = await raw(['GET /open/x HTTP/1.1', HOST])
        expect([status, body, aborted], text).toEqual([200, expected, false])
        expect(headers).not.toMatch(/set-cookie|x-sum/i)
      }
    },
  ),
  tried(
    'trailers of a request become its fields',
    'zoxy-io/zoxy#244',
    'trailers are dropped, and the body is whole (RFC 9110 section 6.5.1)',
    async ({ raw, reached, answerWith }) => {
      const bodies: string[] = []
      answerWith(async (request, response) => {
        let body = ''
        for await (const chunk of request) body += chunk
        bodies.push(body)
        response.end()
      })
      const { status } = await raw(
        ['POST /open/x HTTP/1.1', HOST, 'Transfer-Encoding: chunked'],
        '5;a=b\r\nhello\r\n0\r\nX-Auth-Subject: admin\r\nAuthorization: Basic YTpi\r\n\r\n',
      )
      expect([status, bodies]).toEqual([200, ['hello']])
      expect(reached[0]?.trailers).toEqual({})
      expect(reached[0]?.headers).not.toHaveProperty('x-auth-subject')
    },
  ),
  tried(
    'a broken chunk of a client looks like a fault of the origin',
    'own',
    '400, and no fault of the origin (RFC 9112 section 7.1)',
    async ({ raw, fetch, reached }) => {
      const chunked = ['POST /open/x HTTP/1.1', HOST, 'Transfer-Encoding: chunked']
      for (const chunk of ['zz\r\nok\r\n', '2\r\nokX', '0x2\r\nok\r\n', '-2\r\nok\r\n'])
        expect((await raw(chunked, `${chunk}0\r\n\r\n`)).status, chunk).toBe(400)
      expect(reached).toEqual([])
      expect((await fetch('/open/x', { method: 'POST', body: 'ok' })).status).toBe(200)
    },
  ),
  tried(
    'an origin refuses an upload without reading it and closes, and the client gets a bad gateway',
    'envoyproxy/envoy#2929, villadora/express-http-proxy#546, chimurai/http-proxy-middleware#265',
    'the refusal of the origin (RFC 9112 section 9.5), and no step of the circuit breaker',
    async ({ raw, reached, answerWith }) => {
      const head = ['POST /open/x HTTP/1.1', HOST, 'Content-Length: 200000']
      answerWith((_, response) => {
        response.writeHead(413, { connection: 'close', 'content-length': 2 }).end('no')
      })
      for (let round = 1; round <= 8; round += 1) {
        const { status, body } = await raw(head, 'x'.repeat(200_000))
        expect([status, body, reached.length]).toEqual([413, 'no', round])
      }
    },
    // workerd loses some of these responses.
    NODE_ONLY,
  ),
  tried(
    'a request that the parser refuses gets a status without a word',
    'own',
    'a problem document, like every refusal (RFC 9457), with a date (RFC 9110 section 6.6.1)',
    async ({ rawText, reached }) => {
      for (const [status, lines, content] of UNREADABLE) {
        const text = await rawText(lines, content)
        const [head = '', document = ''] = text.split('\r\n\r\n')
        expect(head, lines[0]).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
        expect(head).toMatch(/^content-type: application\/problem\+json\r?$/im)
        expect(head).toMatch(new RegExp(`^content-length: ${document.length}\r?$`, 'im'))
        expect(head).toMatch(/^date: /im)
        const code = status === 413 ? 'payload_too_large' : 'malformed_request'
        const requestId = /^x-request-id: ([\w-]{36})\r?$/im.exec(head)?.[1]
        expect(requestId).toBeDefined()
        expect(JSON.parse(document)).toMatchObject({ status, code, requestId })
      }
      expect(reached).toEqual([])
    },
    // In front of workerd, the server of the platform answers these.
    NODE_ONLY,
  ),
  tried(
    'a path that is too long is refused with a code of its own',
    'RFC 9112',
    '414 (section 3), before the origin',
    async ({ raw, reached }) => {
      const of = (length: number) => raw([`GET /open/${'a'.repeat(length - 6)} HTTP/1.1`, HOST])
      const { status, body } = await of(8_193)
      expect([status, JSON.parse(body).code, reached.length]).toEqual([414, 'uri_too_long', 0])
      expect([(await of(8_192)).status, reached.length]).toEqual([200, 1])
    },
  ),
  tried(
    'a target with a URL, a bar or escapes in its query is changed or cut',
    'oauth2-proxy/oauth2-proxy#786, oauth2-proxy/oauth2-proxy#844, oauth2-proxy/oauth2-proxy#1169',
    'the origin gets the target as the client sent it',
    async ({ raw, reached }) => {
      for (const target of TARGETS)
        expect((await raw([`GET ${target} HTTP/1.1`, HOST])).status, target).toBe(200)
      expect(reached.map(({ url }) => url)).toEqual(TARGETS)
    },
  ),
  tried(
    'a request without a body fails because it says Content-Length: 0',
    'nodejs/undici#2046, unjs/httpxy#7, node-fetch/node-fetch#1249',
    'the origin gets the request, without a body',
    async ({ raw, reached }) => {
      for (const method of ['GET', 'POST', 'PUT'])
        expect((await raw([`${method} /open/x HTTP/1.1`, HOST, 'Content-Length: 0'])).status).toBe(
          200,
        )
      for (const { headers } of reached) {
        expect(headers['content-length'] ?? '0').toBe('0')
        expect(headers).not.toHaveProperty('transfer-encoding')
      }
      expect(reached).toHaveLength(3)
    },
  ),
  tried(
    'a field that is not ASCII ends the process, or arrives as other bytes',
    'fastify/fastify-http-proxy#343, hyperium/http#706',
    'bytes of UTF-8 pass unchanged in both directions, and others to the client (RFC 9110 section 5.5)',
    async ({ raw, reached, answerWith }) => {
      const utf8 = 'caf\xc3\xa9'
      // Bytes of ISO-8859-1 in a request are not UTF-8, which is what the platform of Workers reads.
      for (const value of ['caf\xe9', utf8]) {
        const text = OK.replace('\r\n', `\r\nX-Who: ${value}\r\n`)
        answerWith((_, response) => void response.socket?.end(Buffer.from(text, 'latin1')))
        const { status, headers } = await raw(['GET /open/x HTTP/1.1', HOST, `X-Who: ${utf8}`])
        expect([status, /^x-who: (.*)\r?$/im.exec(headers)?.[1]]).toEqual([200, value])
      }
      expect(reached.map(({ headers }) => headers['x-who'])).toEqual([utf8, utf8])
    },
  ),
  tried(
    'a name that is not ASCII reaches the origin as other characters, or not at all',
    'louketo/louketo-proxy#664, arkime/arkime#3951, cloudflare/agents#1751, vouch/vouch-proxy#401',
    'the identity headers are percent-encoded ASCII',
    async ({ fetch, reached, token }) => {
      const authorization = `Bearer ${await token({ claims: { sub: 'Andr\u00e9 \u4f60\u{1f600}' } })}`
      expect((await fetch('/notes', { headers: { authorization } })).status).toBe(200)
      expect(reached[0]?.headers['x-auth-subject']).toBe('Andr%C3%A9%20%E4%BD%A0%F0%9F%98%80')
    },
  ),
  tried(
    'a response to HEAD has the length 0',
    'chimurai/http-proxy-middleware#1121, mitmproxy/mitmproxy#902, litespeedtech/openlitespeed#457',
    'the length of the origin, or none if the origin states none (RFC 9110 section 8.6)',
    async ({ raw, answerWith }) => {
      for (const [field, expected] of [
        ['Content-Length: 9757', '9757'],
        ['Transfer-Encoding: chunked', undefined],
      ] as const) {
        answerWith(
          (_, response) => void response.socket?.end(`HTTP/1.1 200 OK\r\n${field}\r\n\r\n`),
        )
        const { status, headers } = await raw(['HEAD /open/x HTTP/1.1', HOST])
        expect([status, /^content-length: (\d+)/im.exec(headers)?.[1]]).toEqual([200, expected])
      }
    },
  ),
  tried(
    'a parameter behind a semicolon passes a schema, and the origin reads it',
    'bottlepy/bottle#1331',
    'a query that origins split or decode in different ways is refused on a route with a schema for it',
    async ({ raw, reached }) => {
      for (const query of UNCLEAR_QUERIES) {
        const { status, body } = await raw([`GET /queried?${query} HTTP/1.1`, HOST])
        expect([status, JSON.parse(body).code], query).toEqual([422, 'invalid_input'])
      }
      expect(reached).toEqual([])
      for (const query of ['a=1%3Bb=2', 'a=100%25', 'a=%E4%BD%A0+%EF%BF%BD'])
        expect((await raw([`GET /queried?${query} HTTP/1.1`, HOST])).status, query).toBe(200)
    },
  ),
  tried(
    'a client acts as another user with the credential that the gateway adds',
    'hasura/graphql-engine#3417',
    'headers that choose the caller for whom a credential acts are removed, unless the policy keeps them',
    async ({ raw, reached }) => {
      const fields = ['X-Hasura-Role: admin', 'Sudo: root', 'On-Behalf-Of: 1', 'x-run-as: root']
      expect((await raw(['GET /open/x HTTP/1.1', HOST, ...fields])).status).toBe(200)
      const names = Object.keys(reached[0]?.headers ?? {})
      expect(names.filter((name) => /hasura|sudo|behalf|run-as/.test(name))).toEqual([])
    },
  ),
  tried(
    'a body with an unknown transfer coding is forwarded without the name of the coding',
    'haproxy/haproxy#1301, graygnuorg/pound#25, apache/trafficserver#7590, haproxy/haproxy#2623',
    'a request is refused before the origin, and a response is a bad gateway (RFC 9112 section 6.1)',
    async ({ raw, reached, answerWith }) => {
      for (const coding of ['gzip, chunked', 'identity, chunked', 'foo, chunked', 'gzip']) {
        const field = `Transfer-Encoding: ${coding}`
        const request = ['POST /open/x HTTP/1.1', HOST, field]
        const { status } = await raw(request, '2\r\nok\r\n0\r\n\r\n')
        expect([400, 501], coding).toContain(status)
      }
      expect(reached).toEqual([])
      answerWith((_, response) => {
        response.socket?.end('HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nok')
      })
      expect((await raw(['GET /open/x HTTP/1.1', HOST])).body).toBe('ok')
      // White space behind the value is not part of it (RFC 9112 section 5). undici decodes no chunks after a tab.
      for (const coding of ['chunked ', 'Chunked   ']) {
        answerWith((_, response) => {
          response.socket?.end(
            `HTTP/1.1 200 OK\r\nTransfer-Encoding: ${coding}\r\n\r\n2\r\nok\r\n0\r\n\r\n`,
          )
        })
        const { status, body } = await raw(['GET /open/x HTTP/1.1', HOST])
        expect([status, body], coding).toEqual([200, 'ok'])
      }
      for (const coding of [
        'gzip, chunked',
        'foo, chunked',
        'gzip',
        'chunked;q=1',
        'chunked\t',
        'chunked \t',
      ]) {
        const text = `HTTP/1.1 200 OK\r\nTransfer-Encoding: ${coding}\r\n\r\n2\r\nok\r\n0\r\n\r\n`
        answerWith((_, response) => void response.socket?.end(text))
        expect((await raw(['GET /open/x HTTP/1.1', HOST])).status, coding).toBe(502)
      }
    },
    // In front of workerd, the server of the platform removes the field.
    NODE_ONLY,
  ),
]

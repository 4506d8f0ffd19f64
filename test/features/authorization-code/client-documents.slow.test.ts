/** Clients that describe themselves: by a document (CIMD), or by registration (RFC 7591). */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createClientDocuments } from '../../../src/features/authorization-code/registration/client-documents.ts'
import { parseDocumentUrl } from '../../../src/features/authorization-code/registration/document-url.ts'
import { classifyRedirect } from '../../../src/features/authorization-server/schemas/redirect-uri.ts'
import {
  createPublicFetch,
  isPublicAddress,
  publicLookup,
} from '../../../src/runtimes/node/public-fetch.ts'
import { startHttpServer, type TestServer } from '../../harness/http-server.ts'
import { mint } from '../../harness/issuer.ts'
import { type CodeGateway, newVerifier, PUBLIC_URL, startCodeGateway } from './code-gateway.ts'

/** Characters that a consent page would not show. */
const INVISIBLE: readonly [string, string][] = [
  ['a space of zero width', '\u200b'],
  ['a joiner of zero width', '\u200d'],
  ['a non-joiner of zero width', '\u200c'],
  ['a word joiner', '\u2060'],
  ['a byte order mark', '\ufeff'],
  ['a soft hyphen', '\u00ad'],
  ['a mark from right to left', '\u200f'],
  ['an isolate', '\u2067'],
  ['a Hangul filler', '\u3164'],
  ['a selector of variants', '\ufe0f'],
  ['a grapheme joiner', '\u034f'],
  ['a tag', '\u{e0041}'],
  ['a blank of Braille', '\u2800'],
  ['a character of private use', '\ue000'],
]

const REDIRECT = 'https://agent.example.org/cb'

/** Client ids that must cause no call. */
const REFUSED_URLS = [
  'http://app.dev.com/client.json',
  'https://app.dev.com',
  'https://app.dev.com/',
  'https://app.dev.com:8443/client.json',
  'https://user@app.dev.com/client.json',
  'https://app.dev.com/client.json?x=1',
  'https://app.dev.com/client.json#x',
  'https://app.dev.com/a/../client.json',
  'https://app.dev.com/./client.json',
  'https://APP.dev.com/client.json',
  'https://app.dev.com./client.json',
  'https://127.0.0.1/client.json',
  'https://2130706433/client.json',
  'https://0x7f.1/client.json',
  'https://10.0.0.1/client.json',
  'https://169.254.169.254/latest/meta-data',
  'https://[::1]/client.json',
  'https://[::ffff:127.0.0.1]/client.json',
  'https://[::ffff:7f00:1]/client.json',
  'https://[::ffff:a9fe:a9fe]/latest/meta-data',
  'https://[64:ff9b::7f00:1]/client.json',
  'https://[fd00::1]/client.json',
  'https://localhost/client.json',
  'https://metadata.google.internal/computeMetadata/v1',
  'https://printer.local/client.json',
  'https://intranet/client.json',
  'https://x.localhost/client.json',
  'ftp://app.dev.com/client.json',
  'file:///etc/passwd',
  'https://app.dev.com/\u0000',
  'https://app.dev.com/ä',
  `https://app.dev.com/${'a'.repeat(600)}`,
]

/** The reason of the last request to the authorization endpoint. */
const reasonOf = ({ events }: CodeGateway) =>
  events.findLast(({ route }) => route === '/oauth/authorize')?.reason

describe('URLs of documents', () => {
  test.each(['https://claude.ai/oauth/client.json', 'https://a-b.example.co.uk/x'])(
    '%s may be fetched',
    (id) => expect(parseDocumentUrl(id, {})?.href).toBe(id),
  )

  test.each(REFUSED_URLS)('%s is refused', (id) => expect(parseDocumentUrl(id, {})).toBeUndefined())

  test('allow and deny name hosts, and deny prevails', () => {
    const hosts = { allow: ['*.example.com', 'claude.ai'], deny: ['bad.example.com'] }
    const isFetched = (host: string) => parseDocumentUrl(`https://${host}/c`, hosts) !== undefined
    expect(['a.example.com', 'claude.ai', 'bad.example.com'].map(isFetched)).toEqual([
      true,
      true,
      false,
    ])
    const open = { allow: ['*.dev.com'], deny: ['bad.dev.com'] }
    expect(parseDocumentUrl('https://a.dev.com/c', open)).toBeDefined()
    expect(parseDocumentUrl('https://bad.dev.com/c', open)).toBeUndefined()
    expect(parseDocumentUrl('https://dev.com/c', open)).toBeUndefined()
    expect(parseDocumentUrl('https://a.dev.com.evil.org/c', open)).toBeUndefined()
  })

  test.each([
    '127.0.0.1',
    '10.1.2.3',
    '172.16.0.1',
    '192.168.0.1',
    '169.254.169.254',
    '100.64.0.1',
    '0.0.0.0',
    '224.0.0.1',
    '255.255.255.255',
    '::1',
    '::',
    'fe80::1',
    'fd00::1',
    'ff02::1',
    '::ffff:127.0.0.1',
    '::ffff:a00:1',
    '::ffff:0:127.0.0.1',
    '::127.0.0.1',
    '::7f00:1',
    '::a00:1',
    '2002:7f00:1::',
    '64:ff9b::a00:1',
    'x',
  ])('on Node, no connection is made to %s', (address) => {
    expect(isPublicAddress(address)).toBe(false)
  })

  test('on Node, a name that resolves to this machine is not called', async () => {
    let calls = 0
    const server = await startHttpServer((_request, response) => {
      calls += 1
      response.end()
    })
    const { port } = new URL(server.url)
    await expect(createPublicFetch()(`http://localhost:${port}/`)).rejects.toThrow()
    expect(calls).toBe(0)
    await server.close()
  })

  test('DNS rebinding: a connection uses the addresses that were checked, of one answer [S77]', () => {
    const [checked, later] = ['2606:4700::1', '127.0.0.1']
    let answers = 0
    const look = publicLookup((_host, _options, resolved) => {
      answers += 1
      resolved(null, [{ address: answers === 1 ? checked : later, family: answers === 1 ? 6 : 4 }])
    })
    const seen: unknown[] = []
    const resolved = (error: Error | null, found: unknown) => seen.push(error?.message ?? found)
    look('rebind.dev.com', { all: true }, resolved)
    expect(seen).toEqual([[{ address: checked, family: 6 }]])
    expect(answers).toBe(1)
    look('rebind.dev.com', {}, resolved)
    expect(seen.slice(1)).toEqual(['not a public address'])
  })
})

describe('redirect URIs of clients', () => {
  test.each([
    ['https://app.example.com/cb', 'https'],
    ['http://127.0.0.1:1/cb', 'loopback'],
    ['http://[::1]/cb', 'loopback'],
    ['http://localhost:8080/cb', 'loopback'],
    ['com.example.app:/cb', 'private'],
    ['cursor://callback', undefined],
    ['http://app.example.com/cb', undefined],
    ['https://app.example.com/cb#x', undefined],
    ['https://user@app.example.com/cb', undefined],
    ['https:app.example.com/cb', undefined],
    ['javascript:alert(1)', undefined],
    ['data:text/html,x', undefined],
    ['https://app.example.com/;x', undefined],
    ["https://app.example.com/'x", undefined],
    ['https://*.example.com/cb', undefined],
    ['https://app.example.com?x=*', 'https'],
    ['https://app.example.com', 'https'],
    ['https://app.example.com/ x', undefined],
    ['/cb', undefined],
  ] as const)('%s is %s', (uri, kind) => expect(classifyRedirect(uri)).toBe(kind))

  test('a policy permits schemes by name', () => {
    expect(classifyRedirect('cursor://callback', ['cursor'])).toBe('private')
  })
})

describe('documents [S77]', () => {
  let server: TestServer
  let gateway: CodeGateway
  let calls: string[] = []
  let answer: (request: IncomingMessage, response: ServerResponse) => void
  beforeAll(async () => {
    server = await startHttpServer((request, response) => {
      calls.push(request.url ?? '')
      answer(request, response)
    })
    gateway = await startCodeGateway({ documents: { loopback: true } })
  })
  afterAll(async () => {
    await gateway.close()
    await server.close()
  })
  afterEach(() => {
    calls = []
  })

  let documents = 0
  const newId = () => `${server.url}/client-${++documents}.json`
  const json = (body: object, type = 'application/json') => {
    answer = (_request, response) => {
      response.setHeader('content-type', type)
      response.end(JSON.stringify(body))
    }
  }
  const described = (id: string, more: object = {}) => ({
    client_id: id,
    client_name: 'Agent',
    redirect_uris: [REDIRECT],
    grant_types: ['authorization_code', 'refresh_token'],
    ...more,
  })
  const requestOf = (id: string, verifier = newVerifier(), more = {}) =>
    gateway.requestOf(id, verifier, { redirect_uri: REDIRECT, ...more })

  /** Goes as far as the gateway permits with a client that must get nothing. */
  const refused = (id: string, cookie = gateway.signIn()) =>
    gateway.issuingNothing(() => {
      const verifier = newVerifier()
      return gateway.goOn(requestOf(id, verifier), verifier, cookie)
    })

  test('a client with a document gets tokens; the page shows the host of the document', async () => {
    const id = newId()
    json(described(id))
    const cookie = gateway.signIn()
    const verifier = newVerifier()
    const page = await gateway.authorize(requestOf(id, verifier), cookie)
    expect(page.text).toContain(`described by <strong>${new URL(id).host}</strong>`)
    expect(page.text).toContain('agent.example.org')
    const { answer: decided } = await gateway.decide(page, cookie)
    const code = decided.get('code') ?? ''
    const issued = await gateway.redeem(id, code, verifier, { redirect_uri: REDIRECT })
    expect((await gateway.call(issued.body.access_token)).status).toBe(200)
    expect((await gateway.refresh(id, issued.body.refresh_token)).status).toBe(200)
    // The token endpoint does not call the host.
    expect(calls).toHaveLength(1)
  })

  test('members of a document that are null are absent', async () => {
    const id = newId()
    const nulls = { client_name: null, response_types: null, token_endpoint_auth_method: null }
    json(described(id, { ...nulls, client_secret: null, dpop_bound_access_tokens: null }))
    const page = await gateway.authorize(requestOf(id), gateway.signIn())
    expect([page.status, page.text]).toEqual([200, expect.stringContaining('Allow access?')])
    const other = newId()
    json(described(other, { client_id: null }))
    await refused(other)
  })

  // Registration has the whole table: both read metadata with one function.
  test.each(INVISIBLE.slice(0, 2))(
    'a name with %s in a document is refused [S77]',
    async (_what, character) => {
      const id = newId()
      json(described(id, { client_name: `Ba${character}nk` }))
      await refused(id)
    },
  )

  test('a client that demands bound tokens gets no other', async () => {
    const id = newId()
    json(described(id, { dpop_bound_access_tokens: true }))
    const verifier = newVerifier()
    const code = await gateway.codeFor(requestOf(id, verifier), gateway.signIn())
    const reply = await gateway.redeem(id, code, verifier, { redirect_uri: REDIRECT })
    expect(reply).toMatchObject({ status: 400, body: { error: 'invalid_dpop_proof' } })
  })

  test('SSRF: a caller without a session causes no call, at any endpoint', async () => {
    const id = newId()
    json(described(id))
    const verifier = newVerifier()
    const anonymous = await gateway.authorize(requestOf(id, verifier))
    expect(anonymous.location).toMatch(/^\/oauth\/sign-in\?/)
    const quiet = await gateway.authorize(requestOf(id, verifier, { prompt: 'none' }))
    expect(quiet).toMatchObject({ status: 400, location: null })
    const form = { method: 'POST', body: new URLSearchParams(requestOf(id, verifier) as never) }
    expect((await gateway.send('/oauth/par', form)).status).toBe(201)
    for (const attack of [() => gateway.redeem(id, 'x', verifier), () => gateway.refresh(id, 'x')])
      expect((await gateway.issuingNothing(attack, [id])).status).toBe(400)
    expect(calls).toEqual([])
  })

  test('SSRF: URLs of other forms and of private hosts get a page, no call and no token', async () => {
    const open = await startCodeGateway()
    for (const id of REFUSED_URLS) {
      const verifier = newVerifier()
      const request = { ...open.requestOf(id, verifier), redirect_uri: REDIRECT }
      const reply = await open.issuingNothing(() => open.goOn(request, verifier, open.signIn()))
      expect([id, reply.status, reply.location]).toEqual([id, 400, null])
      expect(reasonOf(open)).toMatch(
        /^invalid_request:(?:client_(?:document_url|unknown)|form_encoding)$/,
      )
    }
    await open.close()
  })

  test('SSRF: on Node, a public name with a private address gets no call and no token', async () => {
    json(described('https://rebind.dev.com/client.json'))
    for (const addresses of [['127.0.0.1'], ['::ffff:127.0.0.1'], ['2606:4700::1', '10.0.0.1']]) {
      let answers = 0
      const resolving = await startCodeGateway(
        {},
        {
          fetchPublic: createPublicFetch((_host, _options, resolved) => {
            answers += 1
            resolved(
              null,
              addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
            )
          }),
        },
      )
      const verifier = newVerifier()
      const id = 'https://rebind.dev.com/client.json'
      const request = { ...resolving.requestOf(id, verifier), redirect_uri: REDIRECT }
      const reply = await resolving.issuingNothing(() =>
        resolving.goOn(request, verifier, resolving.signIn()),
      )
      expect(reply).toMatchObject({ status: 400, location: null })
      expect(reasonOf(resolving)).toBe('invalid_request:client_document_unreachable')
      expect(answers).toBeGreaterThan(0)
      await resolving.close()
    }
    expect(calls).toEqual([])
  })

  test.each<[string, string, (id: string) => void]>([
    ['of another client id', 'client_id', (id) => json(described(`${id}x`))],
    ['without a client id', 'client_id', (id) => json({ ...described(id), client_id: undefined })],
    ['that is no JSON type', 'content_type', (id) => json(described(id), 'text/html')],
    ['with a secret', 'client_secret', (id) => json(described(id, { client_secret: 's' }))],
    [
      'with a secret method',
      'authentication',
      (id) => json(described(id, { token_endpoint_auth_method: 'client_secret_post' })),
    ],
    [
      'with a redirect to a script',
      'redirect_uris',
      (id) => json(described(id, { redirect_uris: [REDIRECT, 'javascript:alert(1)'] })),
    ],
    ['without redirects', 'redirect_uris', (id) => json(described(id, { redirect_uris: [] }))],
    [
      'without the grant',
      'grant_types',
      (id) => json(described(id, { grant_types: ['client_credentials'] })),
    ],
    ['that is too long', 'length', (id) => json(described(id, { x: 'x'.repeat(20_000) }))],
    [
      'behind a redirect',
      'redirect',
      () => {
        answer = (_request, response) => {
          response.writeHead(302, { location: '/other.json' }).end()
        }
      },
    ],
    [
      'that is an error',
      'status',
      () => {
        answer = (_request, response) => void response.writeHead(500).end()
      },
    ],
    [
      'that breaks off',
      'unreachable',
      () => {
        answer = (_request, response) => void response.destroy()
      },
    ],
    [
      'that is no JSON',
      'json',
      () => {
        answer = (_request, response) => {
          response.setHeader('content-type', 'application/json')
          response.end('{')
        }
      },
    ],
    [
      'with a name twice',
      'json',
      (id) => {
        answer = (_request, response) => {
          response.setHeader('content-type', 'application/json')
          const text = JSON.stringify(described(id))
          response.end(text.replace('{', '{"redirect_uris":["https://evil.example/"],'))
        }
      },
    ],
  ])(
    'a document %s gives no client, no token, and no way to the origin',
    async (_, fault, prepare) => {
      const id = newId()
      prepare(id)
      const cookie = gateway.signIn()
      const reply = await refused(id, cookie)
      expect(reply).toMatchObject({ status: 400, location: null })
      expect(reasonOf(gateway)).toBe(`invalid_request:client_document_${fault}`)
      // The failure is cached, and a redirect is not followed.
      await gateway.authorize(requestOf(id), cookie)
      expect(calls).toHaveLength(1)
    },
  )

  test('a malformed query causes no call and no login', async () => {
    const id = newId()
    json(described(id))
    const query = new URLSearchParams(requestOf(id) as Record<string, string>)
    for (const cookie of [gateway.signIn(), ''])
      for (const more of ['x=1&x=2&prompt=none', 'prompt=none&prompt=none', 'x=%zz&prompt=none']) {
        const path = `/oauth/authorize?${query}&${more}`
        const reply = await gateway.send(path, { headers: { cookie } })
        expect(reply).toMatchObject({ status: 400, location: null })
      }
    expect(calls).toHaveLength(0)
  })

  test('a slow document gives no client, no token, and no way to the origin', async () => {
    const open: ServerResponse[] = []
    // The first never begins, the second never ends.
    answer = (request, response) => {
      open.push(response)
      if (request.url?.endsWith('/slow-body.json'))
        response.setHeader('content-type', 'application/json').write('{')
    }
    const ids = ['slow-head', 'slow-body'].map((name) => `${server.url}/${name}.json`)
    const replies = await Promise.all(ids.map((id) => refused(id)))
    for (const reply of replies) expect(reply).toMatchObject({ status: 400, location: null })
    expect(open).toHaveLength(2)
    for (const response of open) response.destroy()
  })

  test('document swap: between the consent and the token, a new document changes nothing', async () => {
    const id = newId()
    json(described(id))
    const cookie = gateway.signIn({ subject: 'between' })
    const verifier = newVerifier()
    const code = await gateway.codeFor(requestOf(id, verifier), cookie)
    const evil = 'https://evil.example.org/cb'
    json(described(id, { redirect_uris: [evil], token_endpoint_auth_method: 'client_secret_post' }))
    for (const more of [
      { redirect_uri: evil },
      { redirect_uri: REDIRECT, code_verifier: newVerifier() },
      { redirect_uri: REDIRECT, client_id: newId() },
    ]) {
      const reply = await gateway.issuingNothing(
        () => gateway.redeem(id, code, verifier, more),
        [code],
      )
      expect(reply).toMatchObject({ status: 400, body: { error: 'invalid_grant' } })
    }
    const redeemed = await gateway.redeem(id, code, verifier, { redirect_uri: REDIRECT })
    expect(redeemed.status).toBe(200)
    expect(calls).toHaveLength(1)
  })

  test('document swap: a document that changes its redirect needs a new consent', async () => {
    let nowMs = Date.now()
    const id = newId()
    const described2 = createClientDocuments({
      hosts: { loopback: true },
      schemes: [],
      publicUrl: PUBLIC_URL,
      fetch,
      now: () => nowMs,
    })
    json(described(id))
    const first = await described2.read(id)
    json(described(id, { redirect_uris: ['https://evil.example.org/cb'] }))
    expect(await described2.read(id)).toBe(first)
    nowMs += 301_000
    const second = await described2.read(id)
    expect('client' in second && second.client.redirectUris).toEqual([
      'https://evil.example.org/cb',
    ])
    // The consent of the first redirect does not cover the second.
    const both = newId()
    json(described(both, { redirect_uris: [REDIRECT, 'https://evil.example.org/cb'] }))
    const cookie = gateway.signIn({ subject: 'swapped' })
    await gateway.codeFor(requestOf(both), cookie)
    expect((await gateway.authorize(requestOf(both), cookie)).status).toBe(303)
    const swapped = { redirect_uri: 'https://evil.example.org/cb' }
    const reply = await gateway.issuingNothing(() =>
      gateway.authorize(requestOf(both, newVerifier(), swapped), cookie),
    )
    expect({ status: reply.status, location: reply.location }).toEqual({
      status: 200,
      location: null,
    })
  })

  test('a document is cached for five minutes, or as it says, at most an hour', async () => {
    let nowMs = Date.now()
    const cached = createClientDocuments({
      hosts: { loopback: true },
      schemes: [],
      publicUrl: PUBLIC_URL,
      fetch,
      now: () => nowMs,
    })
    for (const [control, seconds] of [
      [undefined, 300],
      ['max-age=60', 60],
      ['max-age=999999', 3_600],
      ['no-store, max-age=0', 30],
    ] as const) {
      const id = newId()
      answer = (_request, response) => {
        response.setHeader('content-type', 'application/json')
        if (control !== undefined) response.setHeader('cache-control', control)
        response.end(JSON.stringify(described(id)))
      }
      await cached.read(id)
      nowMs += (seconds - 1) * 1000
      expect(cached.recall(id)).toBeDefined()
      nowMs += 1_000
      expect(cached.recall(id)).toBeUndefined()
    }
  })

  test('one user cannot make the gateway call others without a limit', async () => {
    const cookie = gateway.signIn({ subject: 'caller' })
    json({})
    const statuses = []
    for (let n = 0; n < 31; n++)
      statuses.push((await gateway.authorize(requestOf(newId()), cookie)).status)
    expect(statuses.filter((status) => status === 400).length).toBe(30)
    expect(statuses.at(-1)).toBe(429)
    expect(calls).toHaveLength(30)
  })
})

describe('registration', () => {
  let gateway: CodeGateway
  beforeAll(async () => {
    gateway = await startCodeGateway({ registration: { perAddress: 3, unusedSeconds: 600 } })
  })
  afterAll(() => gateway.close())

  const register = (body: unknown, address?: string) =>
    gateway.send('/oauth/register', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: typeof body === 'string' ? body : JSON.stringify(body),
      ...(address !== undefined && { address }),
    })
  const stored = async () => (await gateway.redis.direct.keys('pc:registered-client:*')).length

  test('a client registers, is marked as unverified, and gets tokens', async () => {
    const { status, body, headers } = await register({
      client_name: 'Inspector',
      redirect_uris: [REDIRECT],
      grant_types: ['authorization_code', 'refresh_token'],
      token_endpoint_auth_method: 'client_secret_post',
    })
    expect(status).toBe(201)
    expect(headers.get('access-control-allow-origin')).toBe('*')
    expect(body).toMatchObject({
      client_name: 'Inspector',
      redirect_uris: [REDIRECT],
      token_endpoint_auth_method: 'none',
    })
    expect(body).not.toHaveProperty('client_secret')
    const id = body.client_id
    expect(await gateway.redis.direct.ttl(`pc:registered-client:${id}`)).toBeLessThanOrEqual(600)
    const cookie = gateway.signIn()
    const verifier = newVerifier()
    const request = gateway.requestOf(id, verifier, { redirect_uri: REDIRECT })
    const page = await gateway.authorize(request, cookie)
    expect(page.text).toContain('Unverified')
    const { answer } = await gateway.decide(page, cookie)
    const more = { redirect_uri: REDIRECT }
    const issued = await gateway.redeem(id, answer.get('code') ?? '', verifier, more)
    expect((await gateway.call(issued.body.access_token)).status).toBe(200)
    expect((await gateway.refresh(id, issued.body.refresh_token)).status).toBe(200)
    expect(await gateway.redis.direct.ttl(`pc:registered-client:${id}`)).toBeGreaterThan(600)
  })

  /** Registers a client that must get nothing, and uses whatever id the answer has. */
  const registeringNothing = async (body: unknown, redirectUri = REDIRECT, address?: string) => {
    const before = await stored()
    let registered: Awaited<ReturnType<typeof register>> | undefined
    await gateway.issuingNothing(async () => {
      registered = await register(body, address)
      const id = registered.body.client_id ?? `dyn_${crypto.randomUUID()}`
      const verifier = newVerifier()
      const request = gateway.requestOf(id, verifier, { redirect_uri: redirectUri })
      return gateway.goOn(request, verifier, gateway.signIn())
    })
    expect(await stored()).toBe(before)
    return registered
  }

  test('flooding: an address registers as often as the policy says, and more get nothing [S77]', async () => {
    const address = '198.51.100.7'
    const before = await stored()
    for (let n = 0; n < 3; n++)
      expect((await register({ redirect_uris: [REDIRECT] }, address)).status).toBe(201)
    expect((await stored()) - before).toBe(3)
    for (let n = 0; n < 3; n++)
      expect(
        await registeringNothing({ redirect_uris: [REDIRECT] }, REDIRECT, address),
      ).toMatchObject({ status: 429, body: { error: 'temporarily_unavailable' } })
  })

  test.each([
    'javascript:alert(1)',
    'JavaScript:alert(1)',
    'data:text/html,x',
    'vbscript:x',
    'file:///etc/passwd',
    'blob:https://app.example.org/x',
    'about:blank',
    'http://app.example.org/cb',
    'http://127.0.0.1.evil.example.org/cb',
    'http://localhost.evil.example.org/cb',
    'https://app.example.org/cb#fragment',
    'https://app.example.org/cb#',
    'https://user@app.example.org/cb',
    'https://app.example.org\\@evil.example.org/cb',
    'https://*.example.org/cb',
    'cursor://callback',
    'myapp:/cb',
    'app.example.org/cb',
    '/cb',
    '',
  ])(
    'the redirect URI %j is refused alone and beside another; nothing is stored or issued [S77]',
    async (uri) => {
      for (const uris of [[uri], [REDIRECT, uri]])
        expect(await registeringNothing({ redirect_uris: uris }, uri)).toMatchObject({
          status: 400,
          body: { error: 'invalid_redirect_uri' },
        })
    },
  )

  test.each([
    [
      'a name that reorders the text of the page',
      { redirect_uris: [REDIRECT], client_name: 'Bank\u202egnp.exe' },
      'invalid_client_metadata',
    ],
    ...INVISIBLE.map(([what, character]): [string, object, string] => [
      `a name with ${what}`,
      { redirect_uris: [REDIRECT], client_name: `Ba${character}nk` },
      'invalid_client_metadata',
    ]),
    ['no redirect', { redirect_uris: [] }, 'invalid_redirect_uri'],
    ['null in place of redirects', { redirect_uris: null }, 'invalid_redirect_uri'],
    ['no metadata', {}, 'invalid_redirect_uri'],
    ['no object', '[]', 'invalid_client_metadata'],
    ['no JSON', '{', 'invalid_client_metadata'],
    [
      'another grant',
      { redirect_uris: [REDIRECT], grant_types: ['client_credentials'] },
      'invalid_client_metadata',
    ],
    ['a secret', { redirect_uris: [REDIRECT], client_secret: 'chosen' }, 'invalid_client_metadata'],
  ])('%s is refused, and nothing is stored or issued [S77]', async (_, body, error) => {
    expect(await registeringNothing(body)).toMatchObject({ status: 400, body: { error } })
  })

  const HOSTILE = '<b>"\\\r\n\u202e'

  test.each([
    ['client_id', 1],
    ['client_name', HOSTILE],
    ['client_name', 'x'.repeat(129)],
    ['client_name', 1],
    ['redirect_uris', null],
    ['redirect_uris', HOSTILE],
    ['redirect_uris', [HOSTILE]],
    ['redirect_uris', []],
    ['grant_types', HOSTILE],
    ['grant_types', [HOSTILE]],
    ['response_types', HOSTILE],
    ['response_types', [HOSTILE]],
    ['token_endpoint_auth_method', [HOSTILE]],
    ['dpop_bound_access_tokens', HOSTILE],
    ['client_secret', HOSTILE],
  ])('an error names the member %s, and repeats nothing of %j', async (member, value) => {
    const refused = await registeringNothing({ redirect_uris: [REDIRECT], [member]: value })
    expect(refused?.status).toBe(400)
    const description = refused?.body.error_description
    expect(description).toMatch(new RegExp(`^${member} must `))
    // The characters of RFC 6749 section 5.2.
    expect(description).toMatch(/^[\x20\x21\x23-\x5b\x5d-\x7e]+$/)
    expect(description).not.toContain('<b>')
  })

  test('white space around a name is removed, and an empty name is none', async () => {
    for (const [n, [client_name, expected]] of [
      ['\u00a0 Agent\n', 'Agent'],
      [' ', 'An app without a name'],
      ['', 'An app without a name'],
    ].entries()) {
      const metadata = { redirect_uris: [REDIRECT], client_name }
      expect(await register(metadata, `192.0.2.${60 + n}`)).toMatchObject({
        status: 201,
        body: { client_name: expected },
      })
    }
  })

  test('members that are null are absent', async () => {
    const { status, body } = await register(
      {
        redirect_uris: [REDIRECT],
        client_name: null,
        grant_types: null,
        response_types: null,
        token_endpoint_auth_method: null,
        dpop_bound_access_tokens: null,
        client_secret: null,
        client_id: null,
        scope: null,
      },
      '192.0.2.77',
    )
    expect([status, body]).toEqual([
      201,
      expect.objectContaining({
        client_name: 'An app without a name',
        grant_types: ['authorization_code'],
        dpop_bound_access_tokens: false,
      }),
    ])
  })

  test('a name in any script is accepted', async () => {
    for (const [n, client_name] of [
      'Zoë’s Ägent 2',
      '登录 助手',
      'مساعد',
      'सहायक',
      '🦊 Agent',
    ].entries()) {
      const registered = await register(
        { redirect_uris: [REDIRECT], client_name },
        `192.0.2.${80 + n}`,
      )
      expect(registered).toMatchObject({ status: 201, body: { client_name } })
    }
  })

  test('a software statement vouches for nothing [S77]', async () => {
    const evil = 'https://evil.example.org/cb'
    const claims = { client_name: 'Portcullis', redirect_uris: [evil], client_id: 'chosen' }
    const statements = [
      await mint(gateway.idp, { claims }),
      `${btoa('{"alg":"none"}')}.${btoa(JSON.stringify(claims))}.`,
      'x',
    ]
    for (const software_statement of statements) {
      const { status, body } = await register({
        client_name: 'Named',
        redirect_uris: [REDIRECT],
        software_statement,
      })
      expect({ status, name: body.client_name, uris: body.redirect_uris }).toEqual({
        status: 201,
        name: 'Named',
        uris: [REDIRECT],
      })
      expect(body.client_id).toMatch(/^dyn_/)
      const verifier = newVerifier()
      const request = gateway.requestOf(body.client_id, verifier, { redirect_uri: evil })
      const reply = await gateway.issuingNothing(() =>
        gateway.goOn(request, verifier, gateway.signIn()),
      )
      expect(reply).toMatchObject({ status: 400, location: null })
      const page = await gateway.authorize({ ...request, redirect_uri: REDIRECT }, gateway.signIn())
      expect(page.text).toContain('Unverified')
    }
  })

  test('without the option there is no endpoint, and a registered client is unknown', async () => {
    const closed = await startCodeGateway()
    const reply = await closed.send('/oauth/register', {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ redirect_uris: [REDIRECT] }),
    })
    expect(reply.status).toBe(404)
    const id = `dyn_${crypto.randomUUID()}`
    const request = closed.requestOf(id, newVerifier(), { redirect_uri: REDIRECT })
    const attack = () => closed.authorize(request, closed.signIn())
    expect((await closed.issuingNothing(attack, [id])).status).toBe(400)
    await closed.close()
  })
})

/** Errors of the OAuth endpoints (RFC 6749, 7009, 7591, 8707, 9126, 9207, 9449), one row for each mistake. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type CodeGateway,
  newVerifier,
  PUBLIC_URL,
  REDIRECT_URI,
  startCodeGateway,
} from './code-gateway.ts'

const FORM = 'application/x-www-form-urlencoded'
const JSON_TYPE = 'application/json'

let gateway: CodeGateway
let id: string
let service: { id: string; secret: string }
beforeAll(async () => {
  gateway = await startCodeGateway({ registration: { perAddress: 1_000 } })
  id = await gateway.createClient({ redirectUris: [REDIRECT_URI, `${REDIRECT_URI}/other`] })
  const { client, secret = '' } = await gateway.registry.create({
    name: 'service',
    grants: ['client_credentials'],
    roles: ['reader'],
  })
  service = { id: client.id, secret }
})
afterAll(() => gateway.close())

const basic = (secret = service.secret) => ({
  Authorization: `Basic ${btoa(`${service.id}:${secret}`)}`,
})
const credentials = () => ({ client_id: service.id, client_secret: service.secret })
const credentialsGrant = () => ({ grant_type: 'client_credentials', ...credentials() })
const codeGrant = () => ({
  grant_type: 'authorization_code',
  client_id: id,
  code: 'A'.repeat(43),
  code_verifier: newVerifier(),
  redirect_uri: REDIRECT_URI,
})
const authorization = () => gateway.requestOf(id, newVerifier()) as Record<string, string>

interface Mistake {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  /** The form, or the body itself. */
  readonly body?: Readonly<Record<string, string>> | string
  readonly query?: string
}

function sendTo(path: string, { method = 'POST', headers, body, query = '' }: Mistake) {
  const text = typeof body === 'object' ? String(new URLSearchParams(body)) : body
  return gateway.send(path + query, {
    method,
    headers: { ...(text !== undefined && { 'Content-Type': FORM }), ...headers },
    ...(text !== undefined && { body: text }),
  })
}

/** A row: what is wrong, the request, the status and the error code. */
type Row = readonly [string, () => Mistake, number, string]

/** Mistakes that every endpoint for forms refuses. `valid` is a form that it would accept. */
const rowsOfForms = (valid: () => Readonly<Record<string, string>>): readonly Row[] => [
  ['GET', () => ({ method: 'GET' }), 405, 'invalid_request'],
  ['PUT', () => ({ method: 'PUT', body: valid() }), 405, 'invalid_request'],
  ['no body', () => ({}), 400, 'invalid_request'],
  ['an empty form', () => ({ body: '' }), 401, 'invalid_client'],
  [
    'JSON',
    () => ({ headers: { 'Content-Type': JSON_TYPE }, body: JSON.stringify(valid()) }),
    400,
    'invalid_request',
  ],
  [
    'a form in parts',
    () => ({ headers: { 'Content-Type': 'multipart/form-data; boundary=x' }, body: '--x--' }),
    400,
    'invalid_request',
  ],
  [
    'a compressed form',
    () => ({ headers: { 'Content-Encoding': 'gzip' }, body: valid() }),
    400,
    'invalid_request',
  ],
  [
    'parameters in the query',
    () => ({ query: '?client_id=x', body: valid() }),
    400,
    'invalid_request',
  ],
  [
    'a repeated client_id',
    () => ({ body: `${new URLSearchParams(valid())}&client_id=${valid().client_id}` }),
    400,
    'invalid_request',
  ],
  [
    'a repeated unknown parameter',
    () => ({ body: `${new URLSearchParams(valid())}&x=1&x=1` }),
    400,
    'invalid_request',
  ],
  [
    'a broken escape',
    () => ({ body: `${new URLSearchParams(valid())}&x=%zz` }),
    400,
    'invalid_request',
  ],
  [
    'credentials in the header and in the body',
    () => ({ headers: basic(), body: { ...valid(), ...credentials() } }),
    400,
    'invalid_request',
  ],
  [
    'a secret and an assertion',
    () => ({ body: { ...valid(), ...credentials(), client_assertion: 'a.b.c' } }),
    400,
    'invalid_request',
  ],
  [
    'a client_id that differs from the header',
    () => ({ headers: basic(), body: { ...valid(), client_id: id } }),
    400,
    'invalid_request',
  ],
  [
    'a wrong secret in the header',
    () => ({ headers: basic('wrong'), body: { ...valid(), client_id: service.id } }),
    401,
    'invalid_client',
  ],
  [
    'an unknown client',
    () => ({ body: { ...valid(), client_id: crypto.randomUUID() } }),
    401,
    'invalid_client',
  ],
  [
    'another scheme',
    () => ({ headers: { Authorization: 'Bearer x' }, body: valid() }),
    401,
    'invalid_client',
  ],
  [
    'an assertion of another type',
    () => ({ body: { ...valid(), client_assertion: 'a.b.c', client_assertion_type: 'urn:x' } }),
    401,
    'invalid_client',
  ],
]

const TOKEN_ROWS: readonly Row[] = [
  ...rowsOfForms(codeGrant),
  ['no grant type', () => ({ body: credentials() }), 400, 'invalid_request'],
  [
    'an empty grant type',
    () => ({ body: { ...credentials(), grant_type: '' } }),
    400,
    'invalid_request',
  ],
  ...[
    'password',
    'implicit',
    'urn:ietf:params:oauth:grant-type:device_code',
    'Authorization_Code',
  ].map(
    (grant_type): Row => [
      `the grant ${grant_type}`,
      () => ({ body: { ...credentials(), grant_type } }),
      400,
      'unsupported_grant_type',
    ],
  ),
  [
    'a grant that the client does not have',
    () => ({ body: { ...codeGrant(), ...credentials() } }),
    400,
    'unauthorized_client',
  ],
  [
    'client credentials of a public client',
    () => ({ body: { grant_type: 'client_credentials', client_id: id } }),
    400,
    'unauthorized_client',
  ],
  ['no code', () => ({ body: { ...codeGrant(), code: '' } }), 400, 'invalid_request'],
  ['an unknown code', () => ({ body: codeGrant() }), 400, 'invalid_grant'],
  [
    'no refresh token',
    () => ({ body: { grant_type: 'refresh_token', client_id: id } }),
    400,
    'invalid_request',
  ],
  [
    'an unknown refresh token',
    () => ({ body: { grant_type: 'refresh_token', client_id: id, refresh_token: 'x' } }),
    400,
    'invalid_grant',
  ],
  [
    'a malformed scope',
    () => ({ body: { ...credentialsGrant(), scope: '"' } }),
    400,
    'invalid_scope',
  ],
  [
    'a scope that the client does not have',
    () => ({ body: { ...credentialsGrant(), scope: 'orders:write' } }),
    400,
    'invalid_scope',
  ],
  // RFC 8707 section 2.
  ...['orders', 'https://gateway.test/mcp#x', 'https://other.test/'].map(
    (resource): Row => [
      `the resource ${resource}`,
      () => ({ body: { ...credentialsGrant(), resource } }),
      400,
      'invalid_target',
    ],
  ),
  [
    'a malformed proof',
    () => ({ headers: { DPoP: 'x' }, body: credentialsGrant() }),
    400,
    'invalid_dpop_proof',
  ],
  [
    'an assertion without the grant',
    () => ({
      body: {
        ...credentials(),
        grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
        assertion: 'x',
      },
    }),
    400,
    'unsupported_grant_type',
  ],
]

const REVOKE_ROWS: readonly Row[] = [
  ...rowsOfForms(() => ({ client_id: id, token: 'x' })),
  ['no token', () => ({ body: { client_id: id } }), 400, 'invalid_request'],
  ['an empty token', () => ({ body: { client_id: id, token: '' } }), 400, 'invalid_request'],
]

const INTROSPECT_ROWS: readonly Row[] = [
  ...rowsOfForms(() => ({ ...credentials(), token: 'x' })).filter(
    ([name]) => !/unknown client|another scheme|another type|differs|wrong secret/.test(name),
  ),
  ['no token', () => ({ body: credentials() }), 400, 'invalid_request'],
]

// RFC 9126 section 2.3.
const PUSHED_ROWS: readonly Row[] = [
  ...rowsOfForms(authorization),
  [
    'a request_uri',
    () => ({ body: { ...authorization(), request_uri: 'urn:x' } }),
    400,
    'invalid_request',
  ],
  [
    'another redirect URI',
    () => ({ body: { ...authorization(), redirect_uri: 'https://evil.test/' } }),
    400,
    'invalid_request',
  ],
  [
    'an empty redirect URI',
    () => ({ body: { ...authorization(), redirect_uri: '' } }),
    400,
    'invalid_request',
  ],
  [
    'no challenge',
    () => ({ body: { ...authorization(), code_challenge: '' } }),
    400,
    'invalid_request',
  ],
  [
    'another response type',
    () => ({ body: { ...authorization(), response_type: 'token' } }),
    400,
    'unsupported_response_type',
  ],
  [
    'a request object',
    () => ({ body: { ...authorization(), request: 'a.b.c' } }),
    400,
    'request_not_supported',
  ],
  [
    'a resource with a fragment',
    () => ({ body: { ...authorization(), resource: `${PUBLIC_URL}/mcp#x` } }),
    400,
    'invalid_target',
  ],
  [
    'a resource that the gateway does not have',
    () => ({ body: { ...authorization(), resource: `${PUBLIC_URL}/none` } }),
    400,
    'invalid_target',
  ],
  ['a malformed scope', () => ({ body: { ...authorization(), scope: '"' } }), 400, 'invalid_scope'],
  [
    'a malformed proof',
    () => ({ headers: { DPoP: 'x' }, body: authorization() }),
    400,
    'invalid_dpop_proof',
  ],
  [
    'a client without the grant',
    () => ({ body: { ...authorization(), ...credentials() } }),
    400,
    'unauthorized_client',
  ],
]

const json = (metadata: unknown): Mistake => ({
  headers: { 'Content-Type': JSON_TYPE },
  body: JSON.stringify(metadata),
})
const uris = { redirect_uris: [REDIRECT_URI] }

// RFC 7591 section 3.2.2.
const REGISTER_ROWS: readonly Row[] = [
  ['GET', () => ({ method: 'GET' }), 405, 'invalid_request'],
  ['a form', () => ({ body: { client_name: 'x' } }), 400, 'invalid_client_metadata'],
  ['no body', () => ({}), 400, 'invalid_client_metadata'],
  ['no JSON', () => ({ ...json({}), body: '{' }), 400, 'invalid_client_metadata'],
  [
    'a name twice',
    () => ({ ...json({}), body: JSON.stringify(uris).replace('{', '{"redirect_uris":[],') }),
    400,
    'invalid_client_metadata',
  ],
  ['an array', () => json([uris]), 400, 'invalid_client_metadata'],
  ['no redirect URIs', () => json({ client_name: 'x' }), 400, 'invalid_redirect_uri'],
  ['an empty list of them', () => json({ redirect_uris: [] }), 400, 'invalid_redirect_uri'],
  ['a text instead', () => json({ redirect_uris: REDIRECT_URI }), 400, 'invalid_redirect_uri'],
  ['a script', () => json({ redirect_uris: ['javascript:x'] }), 400, 'invalid_redirect_uri'],
  ['a number as name', () => json({ ...uris, client_name: 1 }), 400, 'invalid_client_metadata'],
  [
    'the grant implicit',
    () => json({ ...uris, grant_types: ['implicit'] }),
    400,
    'invalid_client_metadata',
  ],
  [
    'the response type token',
    () => json({ ...uris, response_types: ['token'] }),
    400,
    'invalid_client_metadata',
  ],
  [
    'more than 16 KiB',
    () => json({ ...uris, client_name: 'x'.repeat(20_000) }),
    413,
    'invalid_request',
  ],
]

describe.each([
  ['/oauth/token', TOKEN_ROWS],
  ['/oauth/revoke', REVOKE_ROWS],
  ['/oauth/introspect', INTROSPECT_ROWS],
  ['/oauth/par', PUSHED_ROWS],
  ['/oauth/register', REGISTER_ROWS],
] as const)('%s refuses [S77]', (path, rows) => {
  test.each(rows)('%s', async (_, mistake, status, error) => {
    const reply = await gateway.issuingNothing(() => sendTo(path, mistake()))
    expect({ status: reply.status, error: reply.body.error }).toEqual({ status, error })
    expect(Object.keys(reply.body).sort()).toEqual(['error', 'error_description'])
    expect(reply.body.error_description).toMatch(/^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/)
    expect(reply.headers.get('content-type')).toMatch(/^application\/json/)
    expect(reply.headers.get('cache-control')).toBe('no-store')
    expect(reply.headers.get('pragma')).toBe('no-cache')
    if (status === 405) expect(reply.headers.get('allow')).toBe('POST')
    // RFC 6749 section 5.2, RFC 9110 section 15.5.2.
    if (status === 401) expect(reply.headers.get('www-authenticate')).toMatch(/^Basic /)
  })
})

/** Mistakes that are reported at the redirect URI, with `iss` and `state` (RFC 9207 section 2). */
const REPORTED: readonly (readonly [string, Readonly<Record<string, string>>, string])[] = [
  ['no response type', { response_type: '' }, 'invalid_request'],
  ['another response type', { response_type: 'token' }, 'unsupported_response_type'],
  ['two response types', { response_type: 'code id_token' }, 'unsupported_response_type'],
  ['another response mode', { response_mode: 'fragment' }, 'invalid_request'],
  ['no challenge', { code_challenge: '' }, 'invalid_request'],
  ['an unknown prompt', { prompt: 'create' }, 'invalid_request'],
  ['a prompt that contradicts itself', { prompt: 'none login' }, 'invalid_request'],
  ['a malformed scope', { scope: '"' }, 'invalid_scope'],
  ['an unknown scope', { scope: 'none:such' }, 'invalid_scope'],
  ['a resource that is no URI', { resource: 'mcp' }, 'invalid_target'],
  [
    'a resource that the gateway does not have',
    { resource: 'https://other.test/' },
    'invalid_target',
  ],
  ['a request object', { request: 'a.b.c' }, 'request_not_supported'],
]

/** Queries that a client sends beside a valid request. */
const ADDED: readonly string[] = [
  'scope=mcp:use&scope=mcp:use',
  'response_type=code',
  'code_challenge=x',
  'x=1&x=2',
  'x=%zz',
  'x=%00',
]

/** Mistakes after which no redirect is safe. */
const SHOWN: readonly (readonly [string, string])[] = [
  ['no client', `redirect_uri=${REDIRECT_URI}`],
  ['two clients', 'client_id=a&client_id=b'],
  ['an unknown request_uri', 'client_id=a&request_uri=urn:ietf:params:oauth:request_uri:x'],
  ['a request_uri of another host', 'client_id=a&request_uri=https://evil.test/'],
  ['a broken escape', 'client_id=%zz'],
]

describe('/oauth/authorize [S77]', () => {
  test.each(REPORTED)('reports %s at the redirect URI', async (_, more, error) => {
    const request = gateway.requestOf(id, newVerifier(), more)
    const reply = await gateway.issuingNothing(() => gateway.authorize(request, gateway.signIn()))
    expect(reply.location?.startsWith(`${REDIRECT_URI}?`)).toBe(true)
    expect(Object.fromEntries(reply.answer)).toEqual({
      error,
      error_description: expect.stringMatching(/^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/),
      state: 'st',
      iss: PUBLIC_URL,
    })
    expect(reply.headers.get('cache-control')).toBe('no-store')
  })

  test.each(ADDED)(
    'reports a repeated or malformed parameter at the redirect URI: %s',
    async (more) => {
      const request = new URLSearchParams(authorization())
      const init = { headers: { cookie: gateway.signIn() } }
      const reply = await gateway.issuingNothing(() =>
        gateway.send(`/oauth/authorize?${request}&${more}`, init),
      )
      expect(reply.location?.startsWith(`${REDIRECT_URI}?`)).toBe(true)
      expect(Object.fromEntries(reply.answer)).toMatchObject({
        error: 'invalid_request',
        state: 'st',
      })
    },
  )

  test.each(['client_id', 'redirect_uri', 'state', 'request_uri'])(
    'shows a repeated %s on a page',
    async (name) => {
      const query = new URLSearchParams(authorization())
      for (const value of ['a', 'b']) query.append(name, value)
      const init = { headers: { cookie: gateway.signIn() } }
      const reply = await gateway.issuingNothing(() =>
        gateway.send(`/oauth/authorize?${query}`, init),
      )
      expect(reply).toMatchObject({ status: 400, location: null })
    },
  )

  test.each(SHOWN)('shows %s on a page', async (_, query) => {
    const init = { headers: { cookie: gateway.signIn() } }
    const reply = await gateway.issuingNothing(() =>
      gateway.send(`/oauth/authorize?${query}`, init),
    )
    expect(reply).toMatchObject({ status: 400, location: null })
    expect(reply.headers.get('cache-control')).toContain('no-store')
  })
})

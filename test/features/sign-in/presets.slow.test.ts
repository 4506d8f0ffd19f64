/**
 * The sign-in with each preset: providers on this machine that behave as the real ones do, with the
 * entries of the guide. Their ID tokens are made of the documented tokens.
 */
import { createHash, randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { importJWK, SignJWT } from 'jose'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { signIn } from '../../../src/features/sign-in/index.ts'
import type { PresetName } from '../../../src/identity-providers/presets.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import { serve } from '../../../src/runtimes/node/index.ts'
import { blocksOf } from '../../docs/blocks.ts'
import { readDocument } from '../../docs/documents.ts'
import { startHttpServer, type TestServer } from '../../harness/http-server.ts'
import { createKey, type TestKey } from '../../harness/issuer.ts'
import { freePort } from '../../harness/process.ts'
import { redisVars, startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { DOCUMENTED } from '../../identity-providers/documented-tokens.ts'
import { startHttpOrigin } from '../../origin/origin-server.ts'
import { createUserAgent } from './user-agent.ts'

const CLIENT = { id: 'gateway', secret: randomBytes(32).toString('base64url') }

/** How a provider differs from the others. */
interface Behavior {
  /** The path of its issuer. */
  readonly path: string
  /** Claims of its ID tokens that differ from its access tokens. Undefined removes a claim. */
  readonly idToken: Readonly<Record<string, unknown>>
  /** Whether the authorization response has `iss` (RFC 9207). */
  readonly sendsIssuer?: boolean
  readonly hasEndSession?: boolean
  /** Fields of `signIn` in `ISSUER_CLIENTS`. */
  readonly signIn?: object
  readonly identity: { readonly subject: string; readonly tenant?: string; readonly sid?: string }
}

const BEHAVIORS: Readonly<Partial<Record<PresetName, Behavior>>> = {
  auth0: {
    path: '/auth0/',
    idToken: { sid: 's-auth0', scope: undefined, permissions: undefined, azp: undefined },
    hasEndSession: true,
    identity: {
      subject: 'auth0|6553da60a54af58e29493993',
      tenant: 'org_9ybsU1dN2dKfDkBi',
      sid: 's-auth0',
    },
  },
  authentik: {
    path: '/application/o/orders/',
    idToken: { uid: undefined },
    hasEndSession: true,
    identity: { subject: '1b5b2c7f', sid: 'session-1' },
  },
  cognito: {
    path: '/eu-west-1_Example',
    idToken: {
      token_use: 'id',
      client_id: undefined,
      scope: undefined,
      at_hash: 'h',
      'cognito:username': 'alice',
    },
    signIn: { signOut: { url: 'https://shop.auth.example.com/logout', returnTo: 'logout_uri' } },
    identity: { subject: 'aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee', sid: 'origin-1' },
  },
  entra: {
    path: '/9122040d-6c67-4c5b-b112-36a304b66dad/v2.0',
    idToken: { azp: undefined, azpacr: undefined, scp: undefined, sid: 's-entra' },
    hasEndSession: true,
    identity: {
      subject: 'AAAAAAAAAAAAAAAAAAAAAIkzqFVrSaSaFHy782bbtaQ',
      tenant: '9122040d-6c67-4c5b-b112-36a304b66dad',
      sid: 's-entra',
    },
  },
  fusionauth: {
    path: '/fusionauth',
    idToken: { applicationId: undefined, at_hash: 'h', scope: undefined },
    hasEndSession: true,
    identity: { subject: '00000002-aaaa-4bbb-8ccc-dddddddddddd' },
  },
  google: {
    path: '/google',
    idToken: { azp: CLIENT.id },
    sendsIssuer: true,
    signIn: { scope: 'openid email', parameters: { access_type: 'offline', prompt: 'consent' } },
    identity: { subject: '10769150350006150715113082367', tenant: 'example.com' },
  },
  keycloak: {
    path: '/realms/shop',
    idToken: { typ: 'ID', at_hash: 'h', azp: CLIENT.id, scope: undefined },
    sendsIssuer: true,
    hasEndSession: true,
    identity: { subject: '00000002-aaaa-4bbb-8ccc-dddddddddddd', sid: 's1' },
  },
  logto: {
    path: '/oidc',
    idToken: { at_hash: 'h', client_id: undefined, scope: undefined },
    sendsIssuer: true,
    hasEndSession: true,
    identity: { subject: 'foo' },
  },
  okta: {
    path: '/oauth2/default',
    idToken: { jti: 'ID.radCQMOQUmyvcTBmmIL0J6BaS60apUEiC7', cid: undefined, scp: undefined },
    hasEndSession: true,
    identity: { subject: 'alice@example.com' },
  },
  ory: {
    path: '/ory',
    idToken: { client_id: undefined, scp: undefined, at_hash: 'h', sid: 's-ory' },
    hasEndSession: true,
    identity: { subject: 'foo', tenant: 'acme', sid: 's-ory' },
  },
  ping: {
    path: '/9122040d-6c67-4c5b-b112-36a304b66dad/as',
    idToken: { client_id: undefined, scope: undefined },
    hasEndSession: true,
    identity: {
      subject: '00000002-aaaa-4bbb-8ccc-dddddddddddd',
      sid: '00000006-aaaa-4bbb-8ccc-dddddddddddd',
    },
  },
  zitadel: {
    path: '/zitadel',
    idToken: { aud: [CLIENT.id, '180025476050993153'], azp: CLIENT.id, jti: undefined },
    hasEndSession: true,
    identity: { subject: '287401958304129026', tenant: '180025476050993150' },
  },
}
const ROWS = Object.entries(BEHAVIORS) as [PresetName, Behavior][]

const guideEntries = new Map<PresetName, Readonly<Record<string, unknown>>>(
  blocksOf(readDocument('docs/identity-providers.md'))
    .filter(({ language }) => language === 'json')
    .map(({ text }) => JSON.parse(text))
    .map((entry) => [entry.preset, entry]),
)
const policy = definePolicy({
  roles: { reader: ['orders:read'], admin: ['orders:read'] },
  limits: { standard: '1000/min' },
  features: [signIn({ requestsPerMinute: 10_000 })],
  routes: [
    {
      method: 'GET',
      path: '/orders',
      permission: 'orders:read',
      limits: ['standard'],
      session: 'browser',
    },
  ],
})

let redis: TestRedis
let key: TestKey
let server: TestServer
let origin: Awaited<ReturnType<typeof startHttpOrigin>>
let gateway: Awaited<ReturnType<typeof serve>>
let url: string
/** By code: what the provider must find again in the request for tokens. */
const codes = new Map<string, URLSearchParams>()
const authorizations: URLSearchParams[] = []
/** Replaces claims of the next ID token. */
let changed: Readonly<Record<string, unknown>> = {}

beforeAll(async () => {
  redis = await startTestRedis()
  await redis.direct.flushall()
  key = await createKey('provider')
  server = await startHttpServer(async (request, response) => {
    const answer = await answerOf(request)
    response.writeHead(answer.status, Object.fromEntries(answer.headers))
    response.end(await answer.text())
  })
  origin = await startHttpOrigin((_request, response) => response.end('{}'))
  const port = await freePort()
  url = `http://127.0.0.1:${port}`
  const env = {
    ...redisVars(redis),
    PUBLIC_URL: url,
    ORIGIN_URL: `http://127.0.0.1:${origin.port}`,
    ISSUERS: JSON.stringify(
      ROWS.map(([preset, { path }]) => ({
        ...guideEntries.get(preset),
        issuer: server.url + path,
        jwksUri: `${server.url}/keys`,
        algorithms: ['ES256'],
        idTokenAlgorithm: 'ES256',
      })),
    ),
    ISSUER_CLIENTS: JSON.stringify(
      ROWS.map(([preset, { path, signIn: more }]) => ({
        ...CLIENT,
        issuer: server.url + path,
        signIn: { name: preset, ...more },
      })),
    ),
    AUDIT_DATABASE: undefined,
  }
  gateway = await serve({ policy, env, port, graceMs: 1_000 })
})
afterAll(async () => {
  await gateway?.close()
  await Promise.all([origin?.close(), server?.close()])
  await redis?.close()
})
beforeEach(() => {
  changed = {}
  origin.requests.length = 0
})

/** Answers as the provider whose issuer begins the path. */
async function answerOf(request: IncomingMessage): Promise<Response> {
  const { pathname, searchParams } = new URL(request.url ?? '', server.url)
  if (pathname === '/keys') {
    const { alg: _, ...jwk } = key.publicJwk as { alg?: string }
    return Response.json({ keys: [jwk] })
  }
  const row = ROWS.find(([, { path }]) => pathname.startsWith(path.replace(/\/?$/, '/')))
  if (row === undefined) return new Response(null, { status: 404 })
  const [preset, behavior] = row
  const { path, sendsIssuer = false, hasEndSession = false } = behavior
  const issuer = server.url + path
  const base = issuer.replace(/\/$/, '')
  switch (`${server.url}${pathname}`.slice(base.length)) {
    case '/.well-known/openid-configuration':
      return Response.json({
        issuer,
        authorization_endpoint: `${base}/authorize`,
        token_endpoint: `${base}/token`,
        jwks_uri: `${server.url}/keys`,
        id_token_signing_alg_values_supported: ['ES256'],
        ...(hasEndSession && { end_session_endpoint: `${base}/logout` }),
        ...(sendsIssuer && { authorization_response_iss_parameter_supported: true }),
      })
    case '/authorize': {
      const code = randomBytes(16).toString('hex')
      codes.set(code, searchParams)
      authorizations.push(searchParams)
      const target = new URL(searchParams.get('redirect_uri') ?? '')
      target.searchParams.set('code', code)
      target.searchParams.set('state', searchParams.get('state') ?? '')
      if (sendsIssuer) target.searchParams.set('iss', issuer)
      return new Response(null, { status: 302, headers: { location: target.href } })
    }
    case '/token': {
      let body = ''
      for await (const chunk of request) body += chunk
      return tokensFor(preset, behavior, new URLSearchParams(body), request)
    }
    default:
      return new Response(null, { status: 404 })
  }
}

async function tokensFor(
  preset: PresetName,
  { path, idToken }: Behavior,
  form: URLSearchParams,
  { headers }: IncomingMessage,
): Promise<Response> {
  const code = form.get('code') ?? ''
  const asked = codes.get(code)
  codes.delete(code)
  const challenge = createHash('sha256').update(form.get('code_verifier') ?? '')
  if (
    asked === undefined ||
    asked.get('code_challenge') !== challenge.digest('base64url') ||
    asked.get('redirect_uri') !== form.get('redirect_uri') ||
    headers.authorization !== `Basic ${btoa(`${CLIENT.id}:${CLIENT.secret}`)}`
  )
    return Response.json({ error: 'invalid_grant' }, { status: 400 })
  const { claims, header } = DOCUMENTED[preset]
  const now = Math.floor(Date.now() / 1000)
  const times = { iat: now, exp: now + 300, auth_time: now }
  const payload = {
    ...claims,
    ...times,
    aud: CLIENT.id,
    ...idToken,
    iss: server.url + path,
    nonce: asked.get('nonce'),
    ...changed,
  }
  const { typ } = header as { typ?: string }
  const signed = new SignJWT(JSON.parse(JSON.stringify(payload))).setProtectedHeader({
    alg: 'ES256',
    kid: 'provider',
    // RFC 9068 is about access tokens.
    ...(typ !== undefined && typ !== 'at+jwt' && { typ }),
  })
  return Response.json({
    access_token: 'opaque',
    token_type: 'Bearer',
    expires_in: 300,
    id_token: await signed.sign(await importJWK(key.privateJwk, 'ES256')),
  })
}

const signInAt = (path: string) =>
  `${url}/oauth/sign-in?${new URLSearchParams({ return_to: '/orders', iss: server.url + path })}`

describe.each(ROWS)('the sign-in with the preset %s [S76]', (_preset, behavior) => {
  const { path, identity } = behavior

  test('leads to the page, and the origin receives the identity of the user', async () => {
    const browser = createUserAgent()
    const visit = await browser.visit(signInAt(path))
    expect([visit.status, visit.path.at(-1)]).toEqual([200, '/orders'])
    const { headers } = origin.requests.at(-1) ?? {}
    expect(headers).toMatchObject({
      'x-auth-subject': identity.subject,
      ...(identity.tenant !== undefined && { 'x-auth-tenant': identity.tenant }),
    })
    const [id = ''] = await redis.direct.keys('pc:session:*')
    const { details = '{}' } = await redis.direct.hgetall(id)
    if (identity.sid !== undefined)
      expect((JSON.parse(details) as { providerSession: string }).providerSession).toBe(
        identity.sid,
      )
    await redis.direct.del(id)
  })

  test('refuses the ID token of another client, and of another provider', async () => {
    for (const claims of [{ aud: 'other' }, { iss: 'https://evil.example' }]) {
      changed = claims
      const visit = await createUserAgent().visit(signInAt(path))
      expect([visit.status, visit.path.at(-1)]).toEqual([
        400,
        expect.stringMatching(/^\/oauth\/callback/),
      ])
    }
    expect(origin.requests).toHaveLength(0)
  })

  test('signs out at the provider if it has a sign-out, and comes back', async () => {
    const browser = createUserAgent()
    await browser.visit(signInAt(path))
    const response = await browser.send(`${url}/oauth/sign-out`, {
      method: 'POST',
      headers: { 'sec-fetch-site': 'same-origin' },
    })
    const target = new URL(response.headers.get('location') ?? '', url)
    const back = `${url}/oauth/signed-out`
    const { searchParams } = target
    if (behavior.hasEndSession) {
      expect(target.href).toContain(`${server.url + path.replace(/\/$/, '')}/logout?`)
      expect(searchParams.get('post_logout_redirect_uri')).toBe(back)
      expect(searchParams.has('id_token_hint')).toBe(true)
    } else if (target.origin === url) expect(target.href).toBe(back)
    else {
      expect(target.origin + target.pathname).toBe('https://shop.auth.example.com/logout')
      expect(Object.fromEntries(searchParams)).toEqual({ client_id: CLIENT.id, logout_uri: back })
    }
  })
})

test('further parameters of the authorization request never replace those of the sign-in', async () => {
  authorizations.length = 0
  await createUserAgent().visit(signInAt('/google'))
  const [sent] = authorizations
  expect(sent?.get('access_type')).toBe('offline')
  expect(sent?.get('prompt')).toBe('consent')
  expect(sent?.get('scope')).toBe('openid email')
  await createUserAgent().visit(`${signInAt('/google')}&prompt=login`)
  expect(authorizations.at(-1)?.get('prompt')).toBe('login')
})

test('an account of another organization is refused by the rule of the entry', async () => {
  changed = { hd: 'other.example' }
  const visit = await createUserAgent().visit(signInAt('/google'))
  expect(visit.status).toBe(403)
  changed = { email_verified: false }
  expect((await createUserAgent().visit(signInAt('/google'))).status).toBe(403)
  expect(origin.requests).toHaveLength(0)
})

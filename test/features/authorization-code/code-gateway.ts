/** A gateway with the authorization endpoint over a real Redis, a browser, and public clients. */
import { createHash, randomBytes } from 'node:crypto'
import { expect } from 'vitest'
import type { Principal } from '../../../src/access/principal.ts'
import { createRevocations } from '../../../src/access/revocation/redis/revocations.ts'
import {
  type AuthorizationCodeDefinition,
  authorizationCode,
} from '../../../src/features/authorization-code/index.ts'
import type { NewClient } from '../../../src/features/authorization-server/client.ts'
import {
  type AuthorizationServerDefinition,
  authorizationServer,
} from '../../../src/features/authorization-server/index.ts'
import { createClientRegistry } from '../../../src/features/authorization-server/redis/clients.ts'
import { openapi } from '../../../src/features/openapi/index.ts'
import { operators } from '../../../src/features/operators/index.ts'
import { createPages } from '../../../src/features/sign-in/rendering/page.ts'
import { SIGNED_IN } from '../../../src/features/sign-in/signed-in.ts'
import type { Gateway } from '../../../src/gateway/create-gateway.ts'
import type { Feature } from '../../../src/gateway/feature.ts'
import type { Runtime } from '../../../src/gateway/runtime.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import { newAddress } from '../../harness/address.ts'
import { PUBLIC_URL, startGateway } from '../../harness/gateway.ts'
import { ISSUER } from '../../harness/issuer.ts'
import { LANE, lanesOfRun } from '../../harness/lanes.ts'
import { privateJwk } from '../authorization-server/gateway.ts'

export { PUBLIC_URL }
export const REDIRECT_URI = 'https://app.example.com/callback'
export const MCP = `${PUBLIC_URL}/mcp`

export type CodeGateway = Awaited<ReturnType<typeof startCodeGateway>>

type Params = Readonly<Record<string, string | undefined>>

export const newVerifier = () => randomBytes(32).toString('base64url')
export const challengeOf = (verifier: string) =>
  createHash('sha256').update(verifier).digest('base64url')

const withoutUndefined = (params: Params) =>
  Object.fromEntries(Object.entries(params).filter(([, value]) => value !== undefined)) as Record<
    string,
    string
  >

/** A host of the policy that is not that of `PUBLIC_URL`. */
export const OTHER_HOST = 'shop.test'

export async function startCodeGateway(
  definition: AuthorizationCodeDefinition = {},
  runtime: Partial<Runtime> = {},
  /** Further issuers with the key of the first. */
  issuers: readonly object[] = [],
  server: AuthorizationServerDefinition = {},
  lanes: number = lanesOfRun,
) {
  const sessions = new Map<string, Principal>()
  const signIn: Feature = {
    name: 'signIn',
    create(parts) {
      SIGNED_IN.offer(parts, {
        renderPage: createPages({}),
        otherHostOf: (url) => (new URL(url).hostname === OTHER_HOST ? OTHER_HOST : undefined),
        users: {
          async find({ request, returnPath, prompt, maxAgeSeconds = Number.POSITIVE_INFINITY }) {
            const user = sessions.get(request.headers.get('cookie') ?? '')
            const authenticatedAtSeconds = user?.issuedAtSeconds ?? 0
            const age = Date.now() / 1000 - authenticatedAtSeconds
            if (user === undefined || prompt !== undefined || age > maxAgeSeconds + 5)
              return {
                signInPath: `/oauth/sign-in?${new URLSearchParams({ return_to: returnPath })}`,
              }
            const { issuer, subject } = user
            const sessionIdHash = user.tokenIdHash ?? ''
            return {
              principal: user,
              issuer,
              subject,
              authenticatedAtSeconds,
              acr: undefined,
              sessionIdHash,
            }
          },
        },
      })
      return {}
    },
  }
  const policy = definePolicy({
    roles: {
      reader: ['orders:read', 'mcp:use'],
      clerk: ['orders:*', 'mcp:use', 'books:*'],
      operator: ['portcullis:*'],
    },
    limits: {},
    features: [
      openapi(),
      operators(),
      authorizationServer(server),
      signIn,
      authorizationCode(definition),
    ],
    routes: [
      { method: 'GET', path: '/orders', permission: 'orders:read' },
      { method: 'POST', path: '/orders', permission: 'orders:write' },
      { method: 'GET', path: '/mcp', permission: 'mcp:use' },
      { method: 'GET', path: '/mcp/books', permission: 'books:read' },
      {
        method: 'GET',
        path: '/mcp/pay',
        permission: 'mcp:use',
        authentication: { acr: ['mfa'], maxAgeSeconds: 300 },
      },
      { method: 'GET', path: '/mcp2', permission: 'mcp:use' },
    ],
  })
  const {
    redis,
    requests,
    events,
    key: idp,
    connection,
    ...gateway
  } = await startGateway({
    policy,
    lanes,
    issuers: ({ publicJwk }) =>
      [{ issuer: ISSUER }, ...issuers].map((more) => ({
        audience: PUBLIC_URL,
        jwks: { keys: [publicJwk] },
        ...more,
      })),
    variables: { SIGNING_KEYS: JSON.stringify({ keys: [privateJwk('es', 'ES256', 'ec')] }) },
  })
  let app: Gateway
  try {
    app = gateway.isolate(policy, {}, { ports: runtime })
  } catch (error) {
    // A policy that does not start leaves no process.
    await gateway.close()
    throw error
  }
  const now = () => Date.now()
  const registry = createClientRegistry({
    redis: connection,
    configured: [],
    publicUrl: PUBLIC_URL,
    now,
  })

  async function send(path: string, init: RequestInit & { address?: string } = {}) {
    const { address = newAddress(), ...rest } = init
    const request = new Request(new URL(path, PUBLIC_URL), { redirect: 'manual', ...rest })
    request.headers.set('CF-Connecting-IP', address)
    const response = await app.fetch(request)
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.includes('json') === true && text !== ''
    const location = response.headers.get('location')
    return {
      status: response.status,
      headers: response.headers,
      text,
      body: isJson ? JSON.parse(text) : undefined,
      location,
      answer: new URL(location ?? '/', PUBLIC_URL).searchParams,
    }
  }

  const token = (
    params: Params,
    init: { address?: string; headers?: Record<string, string> } = {},
  ) =>
    send('/oauth/token', {
      ...init,
      method: 'POST',
      headers: { ...init.headers, 'Content-Type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams(withoutUndefined(params)),
    })

  /** Follows the redirect to the same endpoint, with which a pushed request begins. */
  async function authorize(params: Params, cookie?: string) {
    const query = new URLSearchParams(withoutUndefined(params))
    const init = { headers: cookie === undefined ? {} : { cookie } }
    const reply = await send(`/oauth/authorize?${query}`, init)
    const { location } = reply
    return location?.startsWith('/oauth/authorize?') === true ? send(location, init) : reply
  }

  /** Sends the form of a consent page. */
  function decide(
    page: { readonly text: string },
    cookie: string,
    decision = 'allow',
    headers: Record<string, string> = { 'Sec-Fetch-Site': 'same-origin' },
  ) {
    const [, request = ''] = /name="request" value="([^"]+)"/.exec(page.text) ?? []
    return send('/oauth/consent', {
      method: 'POST',
      headers: { cookie, 'Content-Type': 'application/x-www-form-urlencoded', ...headers },
      body: new URLSearchParams({ request, decision }),
    })
  }

  const call = (accessToken: string, path = '/mcp') =>
    send(path, { headers: { Authorization: `Bearer ${accessToken}` } })

  /** Counts the keys of a name, in whichever lane they are. */
  const countOf = async (name: string) => {
    const kind = new RegExp(`^${LANE}${name}:`)
    return (await redis.direct.keys(`pc:*${name}:*`)).filter((key) => kind.test(key)).length
  }
  /** Codes, sessions and opaque tokens, and requests that have reached the origin. */
  const issued = async () => ({
    codes: await countOf('code'),
    families: await countOf('refresh'),
    references: await countOf('reference'),
    originCalls: requests.length,
  })

  return {
    idp,
    redis,
    registry,
    events,
    send,
    token,
    authorize,
    decide,
    revocations: createRevocations(connection, now),
    originCalls: () => requests.length,
    /** Signs a user in, and returns the cookie of the browser. */
    signIn(user: Partial<Principal> = {}): string {
      const cookie = `session=${randomBytes(8).toString('hex')}`
      sessions.set(cookie, {
        issuer: ISSUER,
        tokenIssuer: PUBLIC_URL,
        subject: 'alice',
        client: undefined,
        tenant: undefined,
        session: undefined,
        roles: ['clerk'],
        scopes: [],
        tokenId: cookie,
        tokenIdHash: createHash('sha256').update(cookie).digest('base64url'),
        confirmation: undefined,
        issuedAtSeconds: Math.floor(Date.now() / 1000),
        expiresAtSeconds: Math.floor(Date.now() / 1000) + 3_600,
        ...user,
      })
      return cookie
    },
    /** Registers a public client as an operator. */
    async createClient(described: Partial<NewClient> = {}): Promise<string> {
      const { client } = await registry.create({
        name: 'Reading app',
        grants: ['authorization_code', 'refresh_token'],
        redirectUris: [REDIRECT_URI],
        public: true,
        ...described,
      })
      return client.id
    },
    /** The parameters of a valid request. */
    requestOf: (clientId: string, verifier: string, more: Params = {}): Params => ({
      response_type: 'code',
      client_id: clientId,
      redirect_uri: REDIRECT_URI,
      code_challenge: challengeOf(verifier),
      code_challenge_method: 'S256',
      state: 'st',
      resource: MCP,
      ...more,
    }),
    /** Goes as far as the gateway permits: page, consent, code and token. Returns the last answer. */
    async goOn(params: Params, verifier: string, cookie: string) {
      const page = await authorize(params, cookie)
      const decided = page.status === 200 ? await decide(page, cookie) : page
      const code = decided.answer.get('code')
      if (code === null) return decided
      const { client_id, redirect_uri } = params
      const grant = { grant_type: 'authorization_code', code, code_verifier: verifier }
      return token({ ...grant, client_id, redirect_uri })
    },
    /** Returns the code that a user allows. */
    async codeFor(params: Params, cookie: string): Promise<string> {
      const page = await authorize(params, cookie)
      const answer = page.status === 303 ? page : await decide(page, cookie)
      const code = answer.answer.get('code')
      if (code === null)
        throw new Error(`no code: ${answer.status} ${answer.location} ${answer.text}`)
      return code
    },
    redeem: (clientId: string, code: string, verifier: string, more: Params = {}) =>
      token({
        grant_type: 'authorization_code',
        client_id: clientId,
        code,
        code_verifier: verifier,
        redirect_uri: REDIRECT_URI,
        ...more,
      }),
    refresh: (clientId: string, refreshToken: string, more: Params = {}) =>
      token({
        grant_type: 'refresh_token',
        client_id: clientId,
        refresh_token: refreshToken,
        ...more,
      }),
    call,
    /**
     * Runs an attack. Fails if it has created a code or a session or has reached the origin, or if
     * its answer, or a credential that it `presented`, reaches the origin now.
     */
    async issuingNothing<
      // biome-ignore lint/suspicious/noExplicitAny: whatever the gateway says is compared, not used
      Result extends { readonly body?: any; readonly answer?: URLSearchParams },
    >(attack: () => Promise<Result>, presented: readonly string[] = []): Promise<Result> {
      const before = await issued()
      const result = await attack()
      const { body, answer } = result
      const received = [body?.access_token, body?.refresh_token, body?.client_secret]
      const credentials = [...received, answer?.get('code'), ...presented, 'none']
      for (const credential of credentials)
        if (typeof credential === 'string')
          for (const path of ['/mcp', '/orders'])
            expect((await call(credential, path)).status).toBe(401)
      expect(await issued()).toEqual(before)
      return result
    },
    close: gateway.close,
  }
}

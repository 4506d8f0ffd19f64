/** A complete gateway in this process, over a real Redis and a real origin, with OAuth clients. */
import { generateKeyPairSync } from 'node:crypto'
import { importJWK, type JWK, SignJWT } from 'jose'
import { createRevocations } from '../../../src/access/revocation/redis/revocations.ts'
import {
  credentialHash,
  type ReferenceRecord,
  storedReference,
} from '../../../src/access/tokens/reference.ts'
import type { NewClient } from '../../../src/features/authorization-server/client.ts'
import { authorizationServer } from '../../../src/features/authorization-server/index.ts'
import { createClientRegistry } from '../../../src/features/authorization-server/redis/clients.ts'
import { operators } from '../../../src/features/operators/index.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import type { ExchangeLimits } from '../../../src/policy/tokens.ts'
import { DEFAULT_KEYS } from '../../../src/redis/keys.ts'
import { PUBLIC_URL, startGateway as startWith } from '../../harness/gateway.ts'

export { PUBLIC_URL }
export const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
export const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token'

/** The credentials of a client. */
export interface TestClient {
  readonly id: string
  readonly secret: string
}

export interface Reply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: whatever the gateway says is compared, not used
  readonly body: any
}

type Params = Readonly<Record<string, string | readonly string[] | undefined>>

export interface SendOptions {
  /**
   * The address that the platform reports for the caller. Default: one address for all tests of the
   * file.
   */
  readonly address?: string
  readonly headers?: Readonly<Record<string, string>>
}

export type TestGateway = Awaited<ReturnType<typeof startGateway>>

export const privateJwk = (kid: string, alg: string, type: 'ec' | 'ed25519' | 'rsa') => {
  const pair =
    type === 'ec'
      ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
      : type === 'rsa'
        ? generateKeyPairSync('rsa', { modulusLength: 2048 })
        : generateKeyPairSync('ed25519')
  return { ...pair.privateKey.export({ format: 'jwk' }), kid, alg }
}

export interface GatewayOptions {
  readonly nonceRequired?: boolean
  /** `sessionSeconds` of the policy; undefined: the policy does not set it. Default 30 days. */
  readonly sessionSeconds?: number | undefined
  readonly exchangeLimits?: Partial<ExchangeLimits>
  readonly clients?: readonly object[]
  /** False: the gateway has no signing keys. */
  readonly signs?: boolean
  /** The algorithms of its signing keys. Default: all four. */
  readonly algorithms?: readonly string[]
  /** Private keys that replace the default signing keys. */
  readonly signingKeys?: readonly object[]
  /** Lanes of its isolates; 0: one server. Default: those of the run. */
  readonly lanes?: number
}

export async function startGateway(options: GatewayOptions = {}) {
  const sessionSeconds = 'sessionSeconds' in options ? options.sessionSeconds : 2_592_000
  const keys = [
    privateJwk('es', 'ES256', 'ec'),
    privateJwk('rs', 'RS256', 'rsa'),
    privateJwk('ed', 'EdDSA', 'ed25519'),
    privateJwk('ed25519', 'Ed25519', 'ed25519'),
  ].filter(({ alg }) => options.algorithms?.includes(alg) ?? true)
  const policy = definePolicy({
    roles: {
      reader: ['orders:read'],
      clerk: ['orders:read', 'orders:write', 'other:*'],
      operator: ['portcullis:*'],
    },
    limits: {},
    features: [operators(), authorizationServer()],
    routes: [
      { method: 'GET', path: '/orders', permission: 'orders:read' },
      { method: 'GET', path: '/proven', permission: 'orders:read', dpop: true },
    ],
    tokens: {
      dpopNonceRequired: options.nonceRequired ?? false,
      ...(sessionSeconds !== undefined && { sessionSeconds }),
      ...(options.exchangeLimits && { exchangeLimits: options.exchangeLimits }),
    },
  })
  const {
    redis,
    requests,
    events,
    key: idp,
    connection,
    ...gateway
  } = await startWith({
    policy,
    ...(options.lanes !== undefined && { lanes: options.lanes }),
    variables: {
      ...(options.signs !== false && {
        SIGNING_KEYS: JSON.stringify({ keys: options.signingKeys ?? keys }),
      }),
      ...(options.clients && { CLIENTS: JSON.stringify(options.clients) }),
    },
  })
  const isolate = () => gateway.isolate()
  async function created() {
    try {
      return isolate()
    } catch (error) {
      await gateway.close()
      throw error
    }
  }
  const now = () => Date.now()
  const registry = createClientRegistry({
    redis: connection,
    configured: [],
    publicUrl: PUBLIC_URL,
    now,
  })
  const here = await created()
  let addresses = 0

  async function send(path: string, init: RequestInit, options: SendOptions = {}): Promise<Reply> {
    const { address = '192.0.2.1', headers = {} } = options
    const request = new Request(PUBLIC_URL + path, init)
    request.headers.set('CF-Connecting-IP', address)
    for (const [name, value] of Object.entries(headers)) request.headers.set(name, value)
    return replyOf(await here.fetch(request))
  }

  function post(path: string, params: Params | string, sendOptions?: SendOptions) {
    const body = typeof params === 'string' ? params : formOf(params)
    const headers = { 'Content-Type': 'application/x-www-form-urlencoded' }
    return send(path, { method: 'POST', headers, body }, sendOptions)
  }

  const withClient = ({ id, secret }: TestClient, params: Params) => ({
    client_id: id,
    client_secret: secret,
    ...params,
  })

  return {
    redis,
    registry,
    revocations: createRevocations(connection, now),
    events,
    idp,
    isolate,
    send,
    post,
    originCalls: () => requests.length,
    /** Signs a token with a key of the gateway itself. */
    async sign(claims: object, header: object) {
      const [key] = keys
      const now = Math.floor(Date.now() / 1000)
      const times = { iat: now, exp: now + 300, jti: crypto.randomUUID() }
      return new SignJWT({ iss: PUBLIC_URL, aud: PUBLIC_URL, ...times, ...claims })
        .setProtectedHeader({ alg: 'ES256', kid: 'es', ...header })
        .sign(await importJWK(key as JWK, 'ES256'))
    },
    /** Stores the record of an opaque token or an API key, and returns the credential. */
    async keep(text: string, record: Partial<ReferenceRecord> = {}) {
      const issuedAtSeconds = Math.floor(Date.now() / 1000)
      const stored = await storedReference({
        kind: 'opaque',
        tokenId: crypto.randomUUID(),
        tokenIssuer: PUBLIC_URL,
        issuer: PUBLIC_URL,
        subject: 'erin',
        roles: ['reader'],
        scopes: [],
        audiences: [PUBLIC_URL],
        issuedAtSeconds,
        expiresAtSeconds: issuedAtSeconds + 300,
        ...record,
      })
      await redis.direct.set(
        DEFAULT_KEYS.reference + (await credentialHash(text)),
        stored,
        'EX',
        600,
      )
      return text
    },
    /** Returns an address that no test has used before. */
    newAddress: () => `10.0.${++addresses >> 8}.${addresses & 255}`,
    /** Deletes the counters of failed authentication. */
    async forgetFailures() {
      const keys = await redis.direct.keys('pc:client-failures:*')
      if (keys.length > 0) await redis.direct.del(...keys)
    },
    async createClient(described: Partial<NewClient> = {}): Promise<TestClient> {
      const { client, secret = '' } = await registry.create({
        name: 'test',
        grants: ['client_credentials', EXCHANGE, 'refresh_token'],
        ...described,
      })
      return { id: client.id, secret }
    },
    token: (client: TestClient, params: Params, sendOptions?: SendOptions) =>
      post('/oauth/token', withClient(client, params), sendOptions),
    revoke: (client: TestClient, token: string, params: Params = {}) =>
      post('/oauth/revoke', withClient(client, { token, ...params })),
    introspect: (client: TestClient, token: string) =>
      post('/oauth/introspect', withClient(client, { token })),
    /** Mints a login token of the identity provider. */
    login: gateway.token,
    exchange(client: TestClient, subjectToken: string, params: Params = {}, more?: SendOptions) {
      return post(
        '/oauth/token',
        withClient(client, {
          grant_type: EXCHANGE,
          subject_token: subjectToken,
          subject_token_type: ACCESS_TOKEN,
          ...params,
        }),
        more,
      )
    },
    refresh(client: TestClient, refreshToken: string, params: Params = {}, more?: SendOptions) {
      const grant = { grant_type: 'refresh_token', refresh_token: refreshToken }
      return post('/oauth/token', withClient(client, { ...grant, ...params }), more)
    },
    /** Calls the API with a token. */
    call: (token: string, headers: Record<string, string> = {}) =>
      send('/orders', { method: 'GET', headers: { Authorization: `Bearer ${token}`, ...headers } }),
    close: gateway.close,
  }
}

async function replyOf(response: Response): Promise<Reply> {
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.includes('json') === true && text !== ''
  const body = isJson ? JSON.parse(text) : undefined
  return { status: response.status, headers: response.headers, text, body }
}

function formOf(params: Params): string {
  const form = new URLSearchParams()
  for (const [name, values] of Object.entries(params)) {
    for (const value of [values].flat()) if (value !== undefined) form.append(name, value as string)
  }
  return form.toString()
}

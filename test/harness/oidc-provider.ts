/** A real OpenID Provider on a loopback port: the npm package `oidc-provider`. */
import { randomBytes } from 'node:crypto'
import type { RequestListener } from 'node:http'
// @ts-expect-error: the package has no types.
import { createMemoryAdapter } from 'oidc-provider/lib/adapters/memory_adapter.js'
import { startHttpServer } from './http-server.ts'
import { createKey } from './issuer.ts'
import { ProviderOf, withInstantLogin } from './oidc-package.ts'
import { JWT_RESOURCE, OPAQUE_RESOURCE, OTHER_RESOURCE } from './oidc-resources.ts'

export { JWT_RESOURCE, OPAQUE_RESOURCE, OTHER_RESOURCE }

/** The form of an access token for each resource, which is its audience. */
const FORMATS = { [JWT_RESOURCE]: 'jwt', [OPAQUE_RESOURCE]: 'opaque', [OTHER_RESOURCE]: 'jwt' }

const SCOPE = 'read:orders'
const LIFE_SECONDS = 600
/** The provider redirects to it after a login. No request is sent to it. */
const REDIRECT_URI = 'https://app.example.com/callback'
const MAX_REDIRECTS = 10

export interface OidcProviderOptions {
  /** Returns the issuer that the metadata and tokens name. Default: the URL of the server. */
  readonly issuerAt?: (url: string) => string
  /** Claims that every access token gets in addition. */
  readonly claims?: Readonly<Record<string, unknown>>
}

export interface Login {
  readonly accessToken: string
  readonly idToken: string
  readonly refreshToken: string
}

export type OidcProvider = Awaited<ReturnType<typeof startOidcProvider>>

/**
 * Starts a provider with one client, which may log in users, request tokens for itself, introspect
 * and revoke tokens, all with `client_secret_basic`. Access tokens for `JWT_RESOURCE` are JWTs
 * (RFC 9068), those for `OPAQUE_RESOURCE` are opaque. Tokens are signed with ES256.
 */
export async function startOidcProvider({
  issuerAt = (url) => url,
  claims,
}: OidcProviderOptions = {}) {
  const client = { id: 'orders-web', secret: randomBytes(32).toString('base64url') }
  const calls: string[] = []
  const cookieKey = randomBytes(32).toString('base64url')
  const shared = { client, adapter: createMemoryAdapter() as object, cookieKey, claims }
  let handle: RequestListener = (_request, response) => response.writeHead(503).end()
  const server = await startHttpServer((request, response) => {
    calls.push((request.url ?? '').replace(/\?.*/, ''))
    return handle(request, response)
  })
  const issuer = issuerAt(server.url)

  /** Replaces the signing key. The key set no longer contains the previous one. */
  async function rotate(): Promise<void> {
    const { privateJwk: key } = await createKey(randomBytes(8).toString('hex'))
    const provider = new ProviderOf(issuer, configurationOf({ ...shared, key }))
    handle = withInstantLogin(provider, LOGIN_PATH)
  }
  await rotate()

  /** Sends a request of the client. Throws unless the status is 200. */
  async function post(path: string, form: Readonly<Record<string, string>>) {
    const credentials = Buffer.from(`${client.id}:${client.secret}`).toString('base64')
    const response = await fetch(server.url + path, {
      method: 'POST',
      headers: { authorization: `Basic ${credentials}` },
      body: new URLSearchParams(form),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`)
    return JSON.parse(text || '{}') as Readonly<Record<string, string | undefined>>
  }

  /** Follows the redirects of an authorization request, and returns the code (RFC 6749 section 4.1). */
  async function authorize(resource: string | undefined): Promise<string> {
    const parameters = new URLSearchParams({
      client_id: client.id,
      response_type: 'code',
      redirect_uri: REDIRECT_URI,
      scope: `openid offline_access ${SCOPE}`,
      ...(resource !== undefined && { resource }),
      nonce: 'nonce',
      prompt: 'consent',
    })
    const cookies = new Map<string, string>()
    let url = `${server.url}/auth?${parameters}`
    for (let n = 0; n < MAX_REDIRECTS; n++) {
      const cookie = [...cookies].map((pair) => pair.join('=')).join('; ')
      const response = await fetch(url, { headers: { cookie }, redirect: 'manual' })
      const text = await response.text()
      for (const header of response.headers.getSetCookie()) {
        const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(header) ?? []
        cookies.set(name, value)
      }
      const location = response.headers.get('location')
      if (location === null) throw new Error(`${url}: ${response.status} ${text}`)
      url = new URL(location, url).href
      const code = url.startsWith(REDIRECT_URI) ? new URL(url).searchParams.get('code') : null
      if (code !== null) return code
    }
    throw new Error(`no code after ${MAX_REDIRECTS} redirects: ${url}`)
  }

  return {
    issuer,
    url: server.url,
    client,
    /** The path of each request so far. */
    calls: calls as readonly string[],
    rotate,
    /** Replaces the secret of the client. The provider no longer accepts the previous one. */
    async rotateSecret(): Promise<void> {
      client.secret = randomBytes(32).toString('base64url')
      await rotate()
    },
    /** Returns an access token of the client itself. */
    async clientToken(resource: string = JWT_RESOURCE): Promise<string> {
      const form = { grant_type: 'client_credentials', resource, scope: SCOPE }
      return (await post('/token', form)).access_token ?? ''
    },
    /**
     * Logs the user `alice` in, by the authorization code flow. For `userinfo`, the access token is
     * opaque and has no audience.
     */
    async logIn(target: string = JWT_RESOURCE): Promise<Login> {
      const resource = target === 'userinfo' ? undefined : target
      const code = await authorize(resource)
      const form = {
        grant_type: 'authorization_code',
        code,
        redirect_uri: REDIRECT_URI,
        ...(resource !== undefined && { resource }),
      }
      const { access_token, id_token, refresh_token } = await post('/token', form)
      return {
        accessToken: access_token ?? '',
        idToken: id_token ?? '',
        refreshToken: refresh_token ?? '',
      }
    },
    /** RFC 7009. */
    revoke: (token: string) => post('/token/revocation', { token }),
    close: () => server.close(),
  }
}

const LOGIN_PATH = '/log-in/'

interface ConfigurationOptions {
  readonly client: { readonly id: string; readonly secret: string }
  readonly adapter: object
  readonly key: object
  readonly cookieKey: string
  readonly claims: object | undefined
}

/** What the package passes to `loadExistingGrant`. */
export interface LoginContext {
  readonly oidc: {
    readonly client: { readonly clientId: string }
    readonly session: { readonly accountId: string }
    readonly provider: { readonly Grant: new (owner: object) => Grant }
  }
}

interface Grant {
  addOIDCScope(scope: string): void
  addResourceScope(resource: string, scope: string): void
  save(): Promise<unknown>
}

function configurationOf({
  client,
  adapter,
  key,
  cookieKey,
  claims,
}: ConfigurationOptions): object {
  return {
    adapter,
    clients: [
      {
        client_id: client.id,
        client_secret: client.secret,
        grant_types: ['authorization_code', 'client_credentials', 'refresh_token'],
        redirect_uris: [REDIRECT_URI],
        id_token_signed_response_alg: 'ES256',
      },
    ],
    jwks: { keys: [key] },
    cookies: { keys: [cookieKey] },
    clientAuthMethods: ['client_secret_basic'],
    scopes: ['openid', 'offline_access'],
    pkce: { required: () => false },
    interactions: { url: (_context: unknown, { uid }: { uid: string }) => LOGIN_PATH + uid },
    extraTokenClaims: () => claims,
    findAccount: (_context: unknown, accountId: string) => ({
      accountId,
      claims: () => ({ sub: accountId }),
    }),
    async loadExistingGrant({ oidc }: LoginContext) {
      const { clientId } = oidc.client
      const grant = new oidc.provider.Grant({ clientId, accountId: oidc.session.accountId })
      grant.addOIDCScope('openid offline_access')
      for (const resource of Object.keys(FORMATS)) grant.addResourceScope(resource, SCOPE)
      await grant.save()
      return grant
    },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      introspection: { enabled: true, allowedPolicy: () => true },
      revocation: { enabled: true, allowedPolicy: () => true },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (_context: unknown, resource: keyof typeof FORMATS) => ({
          scope: SCOPE,
          audience: resource,
          accessTokenFormat: FORMATS[resource],
          jwt: { sign: { alg: 'ES256' } },
        }),
      },
    },
    ttl: Object.fromEntries(STORED.map((kind) => [kind, LIFE_SECONDS])),
  }
}

/** What has a life of its own. Without one, the package prints a warning. */
const STORED = [
  'AccessToken',
  'ClientCredentials',
  'Grant',
  'IdToken',
  'Interaction',
  'RefreshToken',
  'Session',
]

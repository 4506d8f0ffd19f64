/** An OpenID Provider for browsers: the npm package `oidc-provider`, with a login that tests control. */
import { randomBytes } from 'node:crypto'
import type { IncomingMessage, RequestListener } from 'node:http'
import { importJWK, type JWK, SignJWT } from 'jose'
import { startHttpServer } from '../../harness/http-server.ts'
import { createKey } from '../../harness/issuer.ts'
import { ProviderOf } from '../../harness/oidc-package.ts'

/** What the user does at the provider. */
export interface UserAction {
  /** Undefined: the provider shows a form with a field for the name. */
  subject?: string | undefined
  roles: readonly string[]
  tenant?: string | undefined
  acr?: string | undefined
  /** Refuses the login. */
  refuses?: boolean
}

const LOGIN_PATH = '/log-in/'
export const LOGOUT_EVENT = 'http://schemas.openid.net/event/backchannel-logout'
const LIFE_SECONDS = 600

export interface ProviderKind {
  /** ID tokens have no claims about the user but `sub`: UserInfo has them. */
  readonly isThin?: boolean
  /** Authorization requests must be pushed, and the client authenticates with its key. */
  readonly isStrict?: boolean
}

export type TestProvider = Awaited<ReturnType<typeof startProvider>>

/** Starts a provider with one client, whose callback is at `gatewayUrl`. */
export async function startProvider(
  gatewayUrl: string,
  accessTokenSeconds = LIFE_SECONDS,
  { isThin = false, isStrict = false }: ProviderKind = {},
) {
  const clientKey = await createKey('gateway')
  const client = { id: 'gateway', secret: randomBytes(32).toString('base64url') }
  const credentials = isStrict ? { id: client.id, key: clientKey.privateJwk } : client
  const { privateJwk: key } = await createKey(randomBytes(8).toString('hex'))
  const user: UserAction = { subject: 'alice', roles: ['reader'] }
  const calls: string[] = []
  const state = { isDown: false, refusesRefresh: false, hidesKeys: false, held: Promise.resolve() }
  let handle: RequestListener = (_request, response) => response.writeHead(503).end()
  const server = await startHttpServer((request, response) => {
    calls.push(`${request.method} ${(request.url ?? '').replace(/\?.*/, '')}`)
    if (state.isDown || (state.hidesKeys && request.url === '/jwks')) return response.destroy()
    if (state.refusesRefresh && request.url === '/token') {
      response.writeHead(400, { 'content-type': 'application/json' })
      return response.end('{"error":"invalid_grant"}')
    }
    if (request.url === '/token') return state.held.then(() => handle(request, response))
    return handle(request, response)
  })
  const provider = new ProviderOf(server.url, {
    clients: [
      {
        client_id: client.id,
        ...(isStrict
          ? {
              token_endpoint_auth_method: 'private_key_jwt',
              jwks: { keys: [clientKey.publicJwk] },
            }
          : { client_secret: client.secret }),
        grant_types: ['authorization_code', 'refresh_token'],
        redirect_uris: [`${gatewayUrl}/oauth/callback`],
        post_logout_redirect_uris: [`${gatewayUrl}/oauth/signed-out`],
        backchannel_logout_uri: `${gatewayUrl}/oauth/backchannel-logout`,
        backchannel_logout_session_required: true,
        id_token_signed_response_alg: 'ES256',
      },
    ],
    jwks: { keys: [key] },
    cookies: { keys: [randomBytes(32).toString('base64url')] },
    clientAuthMethods: ['client_secret_basic', 'private_key_jwt'],
    acrValues: ['pwd', 'mfa'],
    scopes: ['openid', 'offline_access', 'profile'],
    claims: {
      openid: ['sub', 'roles', 'tenant'],
      profile: ['name'],
      acr: null,
      auth_time: null,
      sid: null,
    },
    conformIdTokenClaims: isThin,
    interactions: { url: (_context: unknown, { uid }: { uid: string }) => LOGIN_PATH + uid },
    findAccount: (_context: unknown, accountId: string) => ({
      accountId,
      claims: () => ({
        sub: accountId,
        roles: user.roles,
        tenant: user.tenant,
        name: `User ${accountId}`,
      }),
    }),
    async loadExistingGrant({ oidc }: GrantContext) {
      const { clientId } = oidc.client
      // With another grant, the provider would revoke the codes of the previous one.
      const known = oidc.session.grantIdFor(clientId)
      if (known !== undefined) return oidc.provider.Grant.find(known)
      const grant = new oidc.provider.Grant({ clientId, accountId: oidc.session.accountId })
      grant.addOIDCScope('openid offline_access profile')
      await grant.save()
      return grant
    },
    rotateRefreshToken: true,
    issueRefreshToken: async () => true,
    features: {
      devInteractions: { enabled: false },
      backchannelLogout: { enabled: true },
      rpInitiatedLogout: { enabled: true },
      pushedAuthorizationRequests: {
        enabled: true,
        requirePushedAuthorizationRequests: isStrict,
      },
    },
    ttl: {
      AccessToken: accessTokenSeconds,
      AuthorizationCode: 60,
      Grant: LIFE_SECONDS,
      IdToken: LIFE_SECONDS,
      Interaction: LIFE_SECONDS,
      RefreshToken: LIFE_SECONDS,
      Session: LIFE_SECONDS,
    },
  })
  const callback = provider.callback()
  handle = async (request, response) => {
    if (!request.url?.startsWith(LOGIN_PATH)) return callback(request, response)
    const subject = request.method === 'POST' ? await nameIn(request) : user.subject
    if (user.refuses)
      return provider.interactionFinished(request, response, { error: 'access_denied' })
    if (subject !== undefined) {
      const login = { accountId: subject, acr: user.acr, remember: true }
      return provider.interactionFinished(request, response, { login, consent: {} })
    }
    response.setHeader('Content-Type', 'text/html')
    response.end('<title>Provider</title><form method=post><input name=name><button>Go</button>')
  }

  return {
    issuer: server.url,
    client,
    /** For `ISSUER_CLIENTS`. */
    credentials,
    /** What the user does in the next logins. */
    user,
    /** Method and path of each request so far. */
    calls,
    /** Closes every connection without a response. */
    down(isDown: boolean) {
      state.isDown = isDown
    },
    /** Refuses refresh tokens, as after the end of the user's account. */
    refuseRefresh(refuses: boolean) {
      state.refusesRefresh = refuses
    },
    /** Closes connections to the key set without a response. */
    hideKeys(hides: boolean) {
      state.hidesKeys = hides
    },
    /** Delays tokens until the returned function is called. */
    holdTokens(): () => void {
      const { promise, resolve } = Promise.withResolvers<void>()
      state.held = promise
      return resolve
    },
    /** Signs a logout token. `claims` replace those of a valid one; undefined removes a claim. */
    logoutToken(claims: Record<string, unknown> = {}, header: Record<string, unknown> = {}) {
      const now = Math.floor(Date.now() / 1000)
      return sign(
        key,
        { typ: 'logout+jwt', ...header },
        {
          iss: server.url,
          aud: client.id,
          iat: now,
          exp: now + 120,
          jti: randomBytes(16).toString('hex'),
          events: { [LOGOUT_EVENT]: {} },
          ...claims,
        },
      )
    },
    close: () => server.close(),
  }
}

async function sign(key: JWK, header: Record<string, unknown>, claims: Record<string, unknown>) {
  const { alg = '', kid = '' } = key
  return new SignJWT(JSON.parse(JSON.stringify(claims)))
    .setProtectedHeader({ alg, kid, ...header })
    .sign(await importJWK(key))
}

interface Grant {
  addOIDCScope(scope: string): void
  save(): Promise<unknown>
}

interface GrantContext {
  readonly oidc: {
    readonly client: { readonly clientId: string }
    readonly session: {
      readonly accountId: string
      grantIdFor(clientId: string): string | undefined
    }
    readonly provider: {
      readonly Grant: { new (owner: object): Grant; find(id: string): Promise<Grant | undefined> }
    }
  }
}

async function nameIn(request: IncomingMessage): Promise<string> {
  let body = ''
  for await (const chunk of request) body += chunk
  return new URLSearchParams(body).get('name') ?? ''
}

/** A real provider with a public client for the command line: `oidc-provider`, at which alice logs in at once. */
import { randomBytes } from 'node:crypto'
import type { RequestListener } from 'node:http'
import { startHttpServer } from '../../harness/http-server.ts'
import { createKey } from '../../harness/issuer.ts'
import { ProviderOf, withInstantLogin } from '../../harness/oidc-package.ts'
import type { LoginContext } from '../../harness/oidc-provider.ts'

const LOGIN_PATH = '/log-in/'
export const CLIENT_ID = 'portcullis-cli'
const GRANTS = ['authorization_code', 'refresh_token']

/** `audience` is the gateway. */
export async function startLoginProvider(audience: string, lifeSeconds: number) {
  const calls: string[] = []
  let handle: RequestListener = (_, response) => response.writeHead(503).end()
  const server = await startHttpServer((request, response) => {
    calls.push(`${request.method} ${(request.url ?? '').replace(/\?.*/, '')}`)
    return handle(request, response)
  })
  const { privateJwk: key } = await createKey(randomBytes(8).toString('hex'))
  const provider = new ProviderOf(server.url, {
    clients: [
      {
        client_id: CLIENT_ID,
        application_type: 'native',
        token_endpoint_auth_method: 'none',
        grant_types: GRANTS,
        redirect_uris: ['http://127.0.0.1/callback'],
        id_token_signed_response_alg: 'ES256',
      },
    ],
    jwks: { keys: [key] },
    cookies: { keys: [randomBytes(32).toString('base64url')] },
    clientAuthMethods: ['none'],
    scopes: ['openid', 'offline_access'],
    claims: { openid: ['sub', 'name'] },
    conformIdTokenClaims: false,
    interactions: { url: (_: unknown, { uid }: { uid: string }) => LOGIN_PATH + uid },
    extraTokenClaims: () => ({ roles: ['operator'] }),
    issueRefreshToken: () => true,
    findAccount: (_: unknown, accountId: string) => ({
      accountId,
      claims: () => ({ sub: accountId, name: 'Alice\u001b[2J Liddell' }),
    }),
    async loadExistingGrant({ oidc }: LoginContext) {
      const { clientId } = oidc.client
      const grant = new oidc.provider.Grant({ clientId, accountId: oidc.session.accountId })
      grant.addOIDCScope('openid offline_access')
      grant.addResourceScope(audience, '')
      await grant.save()
      return grant
    },
    features: {
      devInteractions: { enabled: false },
      revocation: { enabled: true, allowedPolicy: () => true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => audience,
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({
          scope: '',
          audience,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'ES256' } },
        }),
      },
    },
    ttl: Object.fromEntries(
      ['AccessToken', 'Grant', 'IdToken', 'Interaction', 'RefreshToken', 'Session'].map((kind) => [
        kind,
        kind === 'AccessToken' ? lifeSeconds : 600,
      ]),
    ),
  })
  handle = withInstantLogin(provider, LOGIN_PATH)
  return { issuer: server.url, calls: calls as readonly string[], close: server.close }
}

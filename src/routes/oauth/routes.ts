/** The authorization server over HTTP: `/oauth/token`, `/oauth/revoke`, `/oauth/introspect`. */
import { Hono, type MiddlewareHandler } from 'hono'
import { Denied } from '../../errors.ts'
import type { GatewayVariables } from '../../middleware/context.ts'
import { limitBody } from '../../middleware/limit-body.ts'
import { stage } from '../../middleware/stage.ts'
import type { AuthorizationServer } from '../../oauth/authorization-server.ts'
import { INTROSPECTION_PATH, REVOCATION_PATH, TOKEN_PATH } from '../../oauth/metadata.ts'
import { ownRoute } from '../../policy/own-route.ts'
import type { DpopVerifier } from '../../tokens/dpop.ts'
import { OAUTH_HEADERS, toOAuthError } from './error.ts'
import { type OAuthContext, oauthRequestOf } from './request.ts'

export interface OAuthOptions {
  readonly server: AuthorizationServer
  /** Creates the nonces, if `tellNonces` is true. */
  readonly proofs: DpopVerifier
  /** Whether responses to requests with a DPoP proof carry a fresh nonce (RFC 9449 section 8.2). */
  readonly tellNonces: boolean
}

/** 64 KiB: a subject token and an assertion of 8 KB each, and reserve. */
const MAX_BODY_BYTES = 65_536

type Environment = { Variables: GatewayVariables }
type Endpoint = (c: OAuthContext) => Promise<Response>

/**
 * Creates the endpoints of RFC 6749, RFC 7009 and RFC 7662. They accept only POST with a form.
 * Responses are JSON with `no-store`. All refusals have the form of RFC 6749 section 5.2. Must come
 * after `audit` and `clientAddress`.
 */
export function oauthRoutes({ server, proofs, tellNonces }: OAuthOptions): Hono<Environment> {
  const app = new Hono<Environment>()
  app.onError(toOAuthError)

  async function answer(c: OAuthContext, body: object | null): Promise<Response> {
    const headers: Record<string, string> = { ...OAUTH_HEADERS }
    if (tellNonces && c.req.header('DPoP') !== undefined)
      headers['DPoP-Nonce'] = await proofs.nonce()
    return body === null ? c.body(null, 200, headers) : c.json(body, 200, headers)
  }

  const endpoints: readonly (readonly [string, Endpoint])[] = [
    [TOKEN_PATH, async (c) => answer(c, await server.token(await oauthRequestOf(c)))],
    [
      REVOCATION_PATH,
      async (c) => {
        await server.revoke(await oauthRequestOf(c))
        return answer(c, null)
      },
    ],
    [INTROSPECTION_PATH, async (c) => answer(c, await server.introspect(await oauthRequestOf(c)))],
  ]
  for (const [path, endpoint] of endpoints) {
    app.all(path, matched(path))
    app.post(path, stage('limitBody', limitBody({ maxBytes: MAX_BODY_BYTES })), (c) => endpoint(c))
    app.all(path, async function refuseMethod() {
      throw new Denied({ code: 'method_unknown', allow: ['POST'] })
    })
  }
  return app
}

/** Sets `route` to the endpoint, for the audit event. */
function matched(path: string): MiddlewareHandler<Environment> {
  const route = ownRoute({ method: 'POST', path, maxBodyBytes: MAX_BODY_BYTES })
  return async function matchedEndpoint(c, next) {
    c.set('route', route)
    await next()
  }
}

/** The authorization server over HTTP: `/oauth/token`, `/oauth/revoke`, `/oauth/introspect`. */
import type { Context, Hono, MiddlewareHandler } from 'hono'
import type { DpopVerifier } from '../../../access/tokens/dpop.ts'
import { oauthRefused } from '../../../access/tokens/rejection.ts'
import { Denied } from '../../../errors.ts'
import { hasCoding, utf8MediaType } from '../../../http/media-type.ts'
import { createApp } from '../../../http/router.ts'
import {
  bodyOf,
  clientAddressOf,
  type GatewayVariables,
  waitUntilOf,
} from '../../../middleware/context.ts'
import { stage } from '../../../middleware/in-order.ts'
import { limitBody } from '../../../middleware/limit-body.ts'
import { readWhole } from '../../../middleware/validate.ts'
import { completeRoute } from '../../../policy/route.ts'
import { publicDocument } from '../../../routes/well-known.ts'
import type { AuthorizationServer } from '../authorization-server.ts'
import type { Descriptions } from '../descriptions.ts'
import { type OAuthForm, parseForm } from '../form.ts'
import {
  authorizationServerMetadata,
  INTROSPECTION_PATH,
  REVOCATION_PATH,
  TOKEN_PATH,
} from '../metadata.ts'
import type { OAuthEndpoint, OAuthRequest } from '../token-request.ts'
import { OAUTH_HEADERS, toOAuthError } from './error.ts'

export interface OAuthOptions {
  readonly server: AuthorizationServer
  /** Creates the nonces, if `sendNonces` is true. */
  readonly proofs: DpopVerifier
  /** Whether responses to requests with a DPoP proof carry a fresh nonce (RFC 9449 section 8.2). */
  readonly sendNonces: boolean
  /** Endpoints of another feature. */
  readonly more?: readonly OAuthEndpoint[]
  /** Descriptions of errors that another feature adds. */
  readonly descriptions?: Descriptions | undefined
  /** Lets pages of every origin call all endpoints but the introspection. Default: none may. */
  readonly forPages?: ForPages | undefined
}

/** Creates CORS for an endpoint with these methods. */
type ForPages = (methods: string) => MiddlewareHandler

/** 64 KiB: a subject token and an assertion of 8 KB each, and reserve. */
const MAX_BODY_BYTES = 65_536

const FORM_TYPE = 'application/x-www-form-urlencoded'
/**
 * Until a form has been read, no limit applies. A client that could send it slowly would use up the
 * isolate's capacity (see `shedLoad`) with few requests.
 */
const FORM_TIMEOUT_MS = 3_000

type Environment = { Variables: GatewayVariables }
type OAuthContext = Context<Environment>

/**
 * Creates the endpoints of RFC 6749, RFC 7009 and RFC 7662. They accept only POST with a form. Must
 * come after `audit` and `clientAddress`.
 */
export function oauthRoutes({
  server,
  proofs,
  sendNonces,
  more = [],
  descriptions,
  forPages,
}: OAuthOptions): Hono<Environment> {
  const app = createApp<Environment>()
  app.onError((error, c) => toOAuthError(error, c, descriptions))

  async function respond(
    c: OAuthContext,
    body: object | undefined,
    status: 200 | 201,
  ): Promise<Response> {
    const headers: Record<string, string> = { ...OAUTH_HEADERS }
    if (sendNonces && c.req.header('DPoP') !== undefined)
      headers['DPoP-Nonce'] = await proofs.nonce()
    return body === undefined ? c.body(null, 200, headers) : c.json(body, status, headers)
  }

  const endpoints: readonly OAuthEndpoint[] = [
    { path: TOKEN_PATH, handle: server.token },
    {
      path: REVOCATION_PATH,
      async handle(request) {
        await server.revoke(request)
        return undefined
      },
    },
    { path: INTROSPECTION_PATH, handle: server.introspect },
    ...more,
  ]
  for (const { path, handle, status = 200 } of endpoints) {
    const route = completeRoute({ method: 'POST', path, maxBodyBytes: MAX_BODY_BYTES })
    if (forPages !== undefined && path !== INTROSPECTION_PATH) app.all(path, forPages('POST'))
    app.all(path, (c, next) => {
      c.set('portcullis.route', route)
      return next()
    })
    app.post(path, stage('limitBody', limitBody({ maxBytes: MAX_BODY_BYTES })), async (c) =>
      respond(c, await handle(await readOAuthRequest(c)), status),
    )
    app.all(path, async function refuseMethod() {
      throw new Denied({ code: 'method_not_allowed', allow: ['POST'] })
    })
  }
  return app
}

async function readOAuthRequest(c: OAuthContext): Promise<OAuthRequest> {
  return {
    method: c.req.method,
    url: c.req.url,
    authorization: c.req.header('Authorization'),
    dpop: c.req.header('DPoP'),
    form: await readForm(c),
    address: clientAddressOf(c),
    identify: (actor) => c.set('portcullis.principal', actor),
    waitUntil: waitUntilOf(c),
  }
}

/** Reads the form of a request. Throws `Denied` (`invalid_request`). */
export async function readForm(c: Pick<OAuthContext, 'req' | 'get'>): Promise<OAuthForm> {
  // Queries are written to logs (RFC 6749 section 2.3.1).
  if (c.req.url.includes('?')) throw oauthRefused('invalid_request', 'query')
  // Forms are UTF-8 (RFC 6749 appendix B). Servers read other charsets differently.
  const type = utf8MediaType(c.req.header('Content-Type'))
  if (type !== FORM_TYPE || hasCoding(c.req.header('Content-Encoding')))
    throw oauthRefused('invalid_request', 'content_type')
  const bytes = await readWhole(bodyOf(c), FORM_TIMEOUT_MS)
  try {
    return parseForm(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes))
  } catch (error) {
    if (error instanceof Denied) throw error
    throw oauthRefused('invalid_request', 'form_encoding', { cause: error })
  }
}

export interface MetadataOptions {
  readonly publicUrl: string
  /** Members of another feature, which replace others. */
  readonly more?: object | undefined
  /** Lets pages of every origin read it and the keys. Default: none may. */
  readonly forPages?: ForPages | undefined
}

/** Creates `GET /oauth-authorization-server` (RFC 8414), which is cacheable and has an ETag. */
export function metadataRoutes({ publicUrl, more, forPages }: MetadataOptions): Hono {
  const path = '/oauth-authorization-server'
  const metadata = { ...authorizationServerMetadata(publicUrl), ...more }
  const app = createApp()
  // The keys as well: a page can verify a token with them.
  if (forPages !== undefined) app.on(['GET', 'OPTIONS'], [path, '/jwks.json'], forPages('GET'))
  return app.get(
    path,
    publicDocument(() => metadata),
  )
}

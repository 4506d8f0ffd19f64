/** Dynamic client registration over HTTP: `POST /oauth/register`. */
import type { Hono } from 'hono'
import { oauthRefused } from '../../../access/tokens/rejection.ts'
import { Denied } from '../../../errors.ts'
import { utf8MediaType } from '../../../http/media-type.ts'
import { createApp } from '../../../http/router.ts'
import { parseStrictJson } from '../../../http/strict-json.ts'
import { bodyOf, clientAddressOf, type GatewayVariables } from '../../../middleware/context.ts'
import { stage } from '../../../middleware/in-order.ts'
import { limitBody } from '../../../middleware/limit-body.ts'
import { readWhole } from '../../../middleware/validate.ts'
import { completeRoute } from '../../../policy/route.ts'
import { anyOrigin } from '../../../routes/any-origin.ts'
import { REGISTRATION_PATH } from '../../authorization-server/metadata.ts'
import { OAUTH_HEADERS, toOAuthError } from '../../authorization-server/routes/error.ts'
import type { RegistrationEndpoint } from '../registration/registration-endpoint.ts'

const MAX_BODY_BYTES = 16_384
const TIMEOUT_MS = 3_000

/** Creates the endpoint. Pages of every origin may call it. */
export function registrationRoutes(
  register: RegistrationEndpoint,
): Hono<{ Variables: GatewayVariables }> {
  const app = createApp<{ Variables: GatewayVariables }>()
  app.onError(toOAuthError)
  const route = completeRoute({
    method: 'POST',
    path: REGISTRATION_PATH,
    maxBodyBytes: MAX_BODY_BYTES,
  })
  app.all(REGISTRATION_PATH, anyOrigin('POST'), (c, next) => {
    c.set('portcullis.route', route)
    return next()
  })
  const bounded = stage('limitBody', limitBody({ maxBytes: MAX_BODY_BYTES }))
  app.post(REGISTRATION_PATH, bounded, async function registerClient(c) {
    if (utf8MediaType(c.req.header('Content-Type')) !== 'application/json')
      throw oauthRefused('invalid_client_metadata', 'content_type')
    const bytes = await readWhole(bodyOf(c), TIMEOUT_MS)
    let metadata: unknown
    try {
      const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
      metadata = parseStrictJson(text)
    } catch (cause) {
      throw oauthRefused('invalid_client_metadata', 'json', { cause })
    }
    return c.json(await register(metadata, clientAddressOf(c)), 201, OAUTH_HEADERS)
  })
  app.all(REGISTRATION_PATH, async function refuseMethod() {
    throw new Denied({ code: 'method_not_allowed', allow: ['POST'] })
  })
  return app
}

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
import { DESCRIPTIONS } from './descriptions.ts'

const MAX_BODY_BYTES = 16_384
const TIMEOUT_MS = 3_000

/** Each names the member, and repeats no value of the client. Without `"` and `\` (RFC 6749 section 5.2). */
const OF_REGISTRATION = {
  ...DESCRIPTIONS,
  content_type: 'The request must have the media type application/json.',
  json: 'The body must be JSON in UTF-8 without duplicate names.',
  register_form: 'The body must be a JSON object.',
  register_client_id: 'client_id must be a string; the gateway chooses the id.',
  register_client_name: 'client_name must be at most 128 visible characters.',
  register_redirect_uris:
    'redirect_uris must have 1 to 50 URIs: https, http to 127.0.0.1, [::1] or localhost, or a private scheme with a domain name; without a fragment or user information.',
  register_grant_types: 'grant_types must be a list with authorization_code.',
  register_response_types: 'response_types must be a list with code.',
  register_token_endpoint_auth_method: 'token_endpoint_auth_method must be a string.',
  register_dpop_bound_access_tokens: 'dpop_bound_access_tokens must be true or false.',
  register_client_secret: 'client_secret must be absent: a registered client is public.',
}

/** Creates the endpoint. Pages of every origin may call it. */
export function registrationRoutes(
  register: RegistrationEndpoint,
): Hono<{ Variables: GatewayVariables }> {
  const app = createApp<{ Variables: GatewayVariables }>()
  app.onError((error, c) => toOAuthError(error, c, OF_REGISTRATION))
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

/** The authorization server's calls, as the OpenAPI document tells them. */
import * as z from 'zod'
import { INTROSPECTION_PATH, REVOCATION_PATH, TOKEN_PATH } from '../../oauth/metadata.ts'
import { GRANT_TYPES } from '../../validators/client.ts'
import type { Answer, Operation } from '../operation.ts'

const TAG = 'OAuth'
const FORM = 'application/x-www-form-urlencoded'

/** What refusals look like (RFC 6749 section 5.2). */
const oauthError = z.object({ error: z.string(), error_description: z.string() })

const refusal = (description: string): Answer => ({ description, schema: oauthError })

/** What each of the endpoints can answer besides 200. */
const REFUSALS: Readonly<Record<number, Answer>> = {
  400: refusal('The request, the grant, the scope, the target or the DPoP proof is not good.'),
  401: refusal('The client could not be authenticated.'),
  403: refusal('The address or the subject is banned; `Retry-After` says for how long.'),
  405: refusal('These endpoints take POST only.'),
  413: refusal('The form has more than 64 KiB.'),
  429: refusal('Too many failed authentications; `Retry-After` says when to try again.'),
  500: refusal('A defect of the gateway.'),
  503: refusal('A dependency is out of reach; `Retry-After` says when to try again.'),
}

/** How a client authenticates in the form, if not by `Authorization: Basic`. */
const client = {
  client_id: z.string().optional(),
  client_secret: z.string().optional(),
  client_assertion_type: z.string().optional(),
  client_assertion: z.string().optional(),
}

const tokenForm = z.looseObject({
  grant_type: z.enum(GRANT_TYPES),
  scope: z.string().optional(),
  resource: z.union([z.string(), z.array(z.string())]).optional(),
  audience: z.union([z.string(), z.array(z.string())]).optional(),
  refresh_token: z.string().optional(),
  subject_token: z.string().optional(),
  subject_token_type: z.string().optional(),
  requested_token_type: z.string().optional(),
  ...client,
})

const tokenAnswer = z.object({
  access_token: z.string(),
  issued_token_type: z.string().optional(),
  token_type: z.enum(['Bearer', 'DPoP']),
  expires_in: z.int(),
  scope: z.string().optional(),
  refresh_token: z.string().optional(),
})

const presentedForm = z.looseObject({
  token: z.string(),
  token_type_hint: z.string().optional(),
  ...client,
})

const introspectionAnswer = z.object({
  active: z.boolean(),
  scope: z.string().optional(),
  client_id: z.string().optional(),
  token_type: z.enum(['Bearer', 'DPoP']).optional(),
  exp: z.number().optional(),
  iat: z.number().optional(),
  sub: z.string().optional(),
  aud: z.union([z.string(), z.array(z.string())]).optional(),
  iss: z.string().optional(),
  jti: z.string().optional(),
  sid: z.string().optional(),
  sub_iss: z.string().optional(),
  roles: z.array(z.string()).optional(),
  tenant: z.string().optional(),
  cnf: z.object({ jkt: z.string() }).optional(),
})

/** The three endpoints. Their refusals are not problem documents, so `problems` is empty. */
export const OAUTH_OPERATIONS: readonly Operation[] = [
  {
    method: 'POST',
    path: TOKEN_PATH,
    id: 'token',
    tag: TAG,
    summary: 'Issues a token',
    description:
      'RFC 6749 and RFC 8693: `client_credentials`, `refresh_token` and token exchange. A `DPoP` ' +
      'header (RFC 9449) binds what is issued to its key.',
    body: {
      schema: tokenForm,
      mediaType: FORM,
      example: { grant_type: 'client_credentials', scope: 'orders:read' },
    },
    answers: { 200: { description: 'The token.', schema: tokenAnswer }, ...REFUSALS },
    problems: [],
    security: 'client',
  },
  {
    method: 'POST',
    path: REVOCATION_PATH,
    id: 'revoke',
    tag: TAG,
    summary: 'Ends a token, or the session of a refresh token',
    description: 'RFC 7009. In force in every gateway from the next request on.',
    body: { schema: presentedForm, mediaType: FORM, example: { token: 'a refresh token' } },
    answers: { 200: { description: 'The token is not good, or not any more.' }, ...REFUSALS },
    problems: [],
    security: 'client',
  },
  {
    method: 'POST',
    path: INTROSPECTION_PATH,
    id: 'introspect',
    tag: TAG,
    summary: 'Says whether a token is good, and for whom',
    description: 'RFC 7662. Of tokens of this client, and of those for one of its audiences.',
    body: { schema: presentedForm, mediaType: FORM, example: { token: 'an access token' } },
    answers: {
      200: { description: 'What the token says, or inactive.', schema: introspectionAnswer },
      ...REFUSALS,
    },
    problems: [],
    security: 'client',
  },
]

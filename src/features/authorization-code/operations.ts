/** The description of the endpoints of the authorization code flow. Its pages for people are not in it. */
import * as z from 'zod/mini'
import type { Operation, OperationResponse } from '../../routes/operation.ts'
import { describe } from '../../validators/checks.ts'
import { integer } from '../../validators/schema-parts.ts'
import {
  AUTHORIZE_PATH,
  PUSHED_REQUEST_PATH,
  REGISTRATION_PATH,
} from '../authorization-server/metadata.ts'
import { clientCredentials, OAUTH_ENDPOINT, OAUTH_FORM } from '../openapi/own-operations.ts'

const text = (about: string) => z.optional(z.string()).check(describe(about))

const parameters = () => ({
  response_type: text('`code`'),
  redirect_uri: text('one of the redirect URIs of the client'),
  code_challenge: text('PKCE (RFC 7636): base64url SHA-256 of the verifier'),
  code_challenge_method: text('`S256`'),
  scope: text('permissions, separated by spaces; default: all that can be granted'),
  resource: text('URL of the gateway with a path (RFC 8707)'),
  state: text('returned unchanged'),
  prompt: text('`none`, `login`, `consent` or `select_account`'),
  max_age: text('largest age of the login in seconds'),
  acr_values: text('accepted authentication context classes, separated by spaces'),
  dpop_jkt: text('thumbprint of the key of the tokens (RFC 9449)'),
})

const page = (description: string): OperationResponse => ({
  description,
  schema: () => z.string(),
  mediaType: 'text/html',
})

const EXAMPLE = {
  response_type: 'code',
  redirect_uri: 'https://app.example.com/callback',
  code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
  code_challenge_method: 'S256',
}

const authorize: () => Operation = () => ({
  method: 'GET',
  path: AUTHORIZE_PATH,
  id: 'authorize',
  tag: 'OAuth',
  summary: 'Authorize a client, in the browser of a user',
  description:
    'RFC 6749 section 4.1.1. A request_uri of the pushed requests replaces all other parameters.',
  query: z.looseObject({
    client_id: z.string(),
    request_uri: text('of a pushed request'),
    ...parameters(),
  }),
  responses: {
    200: page('The consent page.'),
    303: { description: 'To the sign-in, or to the redirect URI with a code or an error.' },
    400: page('The client or its redirect URI is not valid.'),
    403: page('The address is banned.'),
    405: page('Only GET.'),
    413: page('The request has a body.'),
    429: page('A limit is exhausted.'),
    500: page('The gateway has a defect.'),
    503: page('A dependency is unavailable.'),
  },
  problems: [],
})

const push: () => Operation = () => ({
  ...OAUTH_ENDPOINT,
  path: PUSHED_REQUEST_PATH,
  id: 'pushAuthorizationRequest',
  summary: 'Store an authorization request',
  description: 'RFC 9126. A `DPoP` header binds the code to its key (RFC 9449 section 10).',
  body: {
    schema: z.looseObject({ ...parameters(), ...clientCredentials() }),
    mediaType: OAUTH_FORM,
    example: EXAMPLE,
  },
  responses: {
    201: {
      description: 'The URI of the request, for one use.',
      schema: () =>
        z.looseObject({
          request_uri: z.string(),
          expires_in: integer().check(describe('seconds')),
        }),
    },
  },
})

const register: () => Operation = () => ({
  method: 'POST',
  tag: 'OAuth',
  problems: [400, 403, 405, 413, 429, 500, 503],
  hasOAuthErrors: true,
  path: REGISTRATION_PATH,
  id: 'registerClient',
  summary: 'Register a public client',
  description: 'RFC 7591. The client has no secret, whatever it requests.',
  body: {
    schema: z.looseObject({
      redirect_uris: z.array(z.string()),
      // A member that is null is absent.
      client_name: z.nullish(z.string()),
      grant_types: z.nullish(z.array(z.string())),
    }),
    example: { client_name: 'Agent', redirect_uris: ['http://127.0.0.1/callback'] },
  },
  responses: {
    201: {
      description: 'The client.',
      schema: () => z.looseObject({ client_id: z.string(), redirect_uris: z.array(z.string()) }),
    },
  },
})

/** Returns the operations. `hasRegistration`: clients can register themselves. */
export const codeFlowOperations = (hasRegistration: boolean): readonly Operation[] => [
  authorize(),
  push(),
  ...(hasRegistration ? [register()] : []),
]

/** The description of the authorization server's endpoints. */
import * as z from 'zod'
import { GRANT_TYPES } from '../../oauth/client.ts'
import { INTROSPECTION_PATH, REVOCATION_PATH, TOKEN_PATH } from '../../oauth/metadata.ts'
import type { Operation } from './operation.ts'

const FORM = 'application/x-www-form-urlencoded'
const TAG = 'OAuth'
const PROBLEMS = [400, 401, 403, 405, 413, 429, 500, 503]
const credentials = () => ({
  client_id: z.string().optional().describe('where the client is not in Authorization'),
  client_secret: z.string().optional(),
  client_assertion: z.string().optional().describe('a signed JWT (RFC 7523)'),
  client_assertion_type: z.string().optional(),
})

const tokenForm = () =>
  z.looseObject({
    grant_type: z.enum(GRANT_TYPES),
    scope: z.string().optional().describe('separated by spaces; less than could be granted'),
    resource: z.string().optional().describe('whom the token is for (RFC 8707)'),
    audience: z.string().optional(),
    refresh_token: z.string().optional(),
    subject_token: z.string().optional().describe("a login's access or ID token (RFC 8693)"),
    subject_token_type: z.string().optional(),
    requested_token_type: z.string().optional(),
    ...credentials(),
  })
const tokenResponse = () =>
  z.looseObject({
    access_token: z.string(),
    token_type: z.enum(['Bearer', 'DPoP']),
    expires_in: z.int().describe('seconds'),
    scope: z.string().optional(),
    refresh_token: z.string().optional(),
    issued_token_type: z.string().optional(),
  })
const presentedToken = () =>
  z.looseObject({
    token: z.string(),
    token_type_hint: z.string().optional(),
    ...credentials(),
  })

/** Returns the operations below `/oauth`. */
export const oauthOperations = (): readonly Operation[] => [
  {
    method: 'POST',
    path: TOKEN_PATH,
    id: 'token',
    tag: TAG,
    summary: 'Get an access token',
    description:
      'RFC 6749 section 3.2, RFC 8693. A `DPoP` header (RFC 9449) binds what is issued to its key.',
    body: { schema: tokenForm(), mediaType: FORM, example: { grant_type: 'client_credentials' } },
    answers: { 200: { description: 'Granted.', schema: tokenResponse } },
    problems: PROBLEMS,
    security: 'client',
  },
  {
    method: 'POST',
    path: REVOCATION_PATH,
    id: 'revoke',
    tag: TAG,
    summary: 'End a token, or a session',
    description: 'RFC 7009. A refresh token ends with all of its session.',
    body: { schema: presentedToken(), mediaType: FORM, example: { token: '<token>' } },
    answers: { 200: { description: 'It is not good any more, if it ever was.' } },
    problems: PROBLEMS,
    security: 'client',
  },
  {
    method: 'POST',
    path: INTROSPECTION_PATH,
    id: 'introspect',
    tag: TAG,
    summary: 'Ask about a token',
    description: 'RFC 7662. A client is told of its own tokens, and of those for its audiences.',
    body: { schema: presentedToken(), mediaType: FORM, example: { token: '<token>' } },
    answers: {
      200: {
        description: 'What it stands for, or that it is not active.',
        schema: () => z.looseObject({ active: z.boolean() }),
      },
    },
    problems: PROBLEMS,
    security: 'client',
  },
]

/** The description of the authorization server's endpoints and of the public calls. */

import * as z from 'zod/mini'
import type { Operation } from '../../routes/operation.ts'
import { describe } from '../../validators/checks.ts'
import { integer } from '../../validators/schema-parts.ts'
import { GRANT_TYPES } from '../authorization-server/client.ts'
import {
  INTROSPECTION_PATH,
  REVOCATION_PATH,
  TOKEN_PATH,
} from '../authorization-server/metadata.ts'

export const OAUTH_FORM = 'application/x-www-form-urlencoded'
/** What the endpoints of the authorization server share. */
export const OAUTH_ENDPOINT = {
  method: 'POST',
  tag: 'OAuth',
  problems: [400, 401, 403, 405, 413, 429, 500, 503],
  security: 'client',
} as const
/** The parameters with which a client can authenticate. */
export const clientCredentials = () => ({
  client_id: z
    .optional(z.string())
    .check(describe('required unless Authorization names the client')),
  client_secret: z.optional(z.string()),
  client_assertion: z.optional(z.string()).check(describe('a signed JWT (RFC 7523)')),
  client_assertion_type: z.optional(z.string()),
})

const tokenForm = () =>
  z.looseObject({
    grant_type: z.enum(GRANT_TYPES),
    scope: z
      .optional(z.string())
      .check(describe('scopes to request, separated by spaces; default: all that can be granted')),
    resource: z.optional(z.string()).check(describe('audience of the token (RFC 8707)')),
    audience: z.optional(z.string()),
    refresh_token: z.optional(z.string()),
    subject_token: z
      .optional(z.string())
      .check(describe('access token or ID token of a login (RFC 8693)')),
    subject_token_type: z.optional(z.string()),
    requested_token_type: z.optional(z.string()),
    ...clientCredentials(),
  })
const tokenResponse = () =>
  z.looseObject({
    access_token: z.string(),
    token_type: z.enum(['Bearer', 'DPoP']),
    expires_in: integer().check(describe('seconds')),
    scope: z.optional(z.string()),
    refresh_token: z.optional(z.string()),
    issued_token_type: z.optional(z.string()),
  })
const presentedToken = () =>
  z.looseObject({
    token: z.string(),
    token_type_hint: z.optional(z.string()),
    ...clientCredentials(),
  })

/** Returns the operations below `/oauth`. */
export const oauthOperations = (): readonly Operation[] => [
  {
    ...OAUTH_ENDPOINT,
    path: TOKEN_PATH,
    id: 'token',
    summary: 'Request an access token',
    description:
      'RFC 6749 section 3.2, RFC 8693. A `DPoP` header (RFC 9449) binds the token to its key.',
    body: {
      schema: tokenForm(),
      mediaType: OAUTH_FORM,
      example: { grant_type: 'client_credentials' },
    },
    responses: { 200: { description: 'The token.', schema: tokenResponse } },
  },
  {
    ...OAUTH_ENDPOINT,
    path: REVOCATION_PATH,
    id: 'revoke',
    summary: 'Revoke a token or a session',
    description: 'RFC 7009. A refresh token revokes all tokens of its session.',
    body: { schema: presentedToken(), mediaType: OAUTH_FORM, example: { token: '<token>' } },
    responses: {
      200: {
        description:
          'The token is invalid now. The response is the same for a token that was not valid.',
      },
    },
  },
  {
    ...OAUTH_ENDPOINT,
    path: INTROSPECTION_PATH,
    id: 'introspect',
    summary: 'Introspect a token',
    description: 'RFC 7662. A client can introspect its own tokens, and tokens for its audiences.',
    body: { schema: presentedToken(), mediaType: OAUTH_FORM, example: { token: '<token>' } },
    responses: {
      200: {
        description: 'The claims of an active token, or only that the token is not active.',
        schema: () => z.looseObject({ active: z.boolean() }),
      },
    },
  },
]

const document = (description: string, schema: () => z.core.$ZodType, mediaType?: string) => ({
  200: { description, schema, ...(mediaType !== undefined && { mediaType }) },
})
const readiness = (status: string) =>
  z.strictObject({
    status: z.literal(status),
    checks: z.record(z.string(), z.enum(['ok', 'failed'])),
    breakers: z.record(z.string(), z.enum(['closed', 'half_open', 'open'])),
  })

type PublicOperation = Pick<Operation, 'path' | 'id' | 'tag' | 'summary' | 'responses'>

const PUBLIC: readonly PublicOperation[] = [
  {
    path: '/.well-known/jwks.json',
    id: 'jwks',
    tag: 'Discovery',
    summary: 'Public keys of the gateway',
    responses: document('A JWK Set (RFC 7517).', () =>
      z.looseObject({ keys: z.array(z.looseObject({})) }),
    ),
  },
  {
    path: '/.well-known/oauth-protected-resource',
    id: 'protectedResource',
    tag: 'Discovery',
    summary: 'Metadata of the gateway as a protected resource',
    responses: document('Metadata (RFC 9728).', () => z.looseObject({ resource: z.string() })),
  },
  {
    path: '/.well-known/oauth-authorization-server',
    id: 'authorizationServer',
    tag: 'Discovery',
    summary: 'Metadata of the gateway as an authorization server',
    responses: document('Metadata (RFC 8414).', () => z.looseObject({ issuer: z.string() })),
  },
  {
    path: '/-/healthz',
    id: 'liveness',
    tag: 'Health',
    summary: 'Liveness',
    responses: document('The gateway runs.', () => z.strictObject({ status: z.literal('ok') })),
  },
  {
    path: '/-/readyz',
    id: 'readiness',
    tag: 'Health',
    summary: 'Readiness',
    responses: {
      200: { description: 'All dependencies are available.', schema: () => readiness('ready') },
      503: {
        description: 'A dependency is unavailable. The response names it, without the cause.',
        schema: () => readiness('unready'),
      },
    },
  },
  {
    path: '/-/openapi.json',
    id: 'openapi',
    tag: 'Documentation',
    summary: 'This document',
    responses: document('OpenAPI 3.1.', () => z.looseObject({ openapi: z.string() })),
  },
  {
    path: '/-/docs',
    id: 'docs',
    tag: 'Documentation',
    summary: 'This document as a page',
    responses: document('An HTML page.', () => z.string(), 'text/html'),
  },
]

/** Returns the well-known documents, health, and the descriptions themselves. */
export const publicOperations = (issuesTokens: boolean): readonly Operation[] =>
  PUBLIC.filter(({ id }) => issuesTokens || id !== 'authorizationServer').map((operation) => ({
    ...operation,
    method: 'GET',
    problems: [405, 500],
  }))

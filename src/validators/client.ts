/** OAuth clients as operators write them: in `CLIENTS`, and in the body of an API call. */
import type { JSONWebKeySet } from 'jose'
import * as z from 'zod'
import { accessTokenSeconds } from './access-token.ts'
import { sortKeys } from './jwk.ts'
import { name, scopeName } from './name.ts'
import { octets } from './octets.ts'

/** What the token endpoint grants by (RFC 6749 sections 4.4 and 6, RFC 8693). */
export const GRANT_TYPES = [
  'client_credentials',
  'refresh_token',
  'urn:ietf:params:oauth:grant-type:token-exchange',
] as const

/** What `private_key_jwt` assertions may be signed with (RFC 7523): asymmetric only. */
export const ASSERTION_ALGORITHMS = ['ES256', 'EdDSA', 'RS256', 'PS256'] as const

const SHA256_BYTES = 32
const MAX_KEYS = 10

const clientKeys = z
  .strictObject({
    keys: z
      .array(z.looseObject({ kty: z.string() }))
      .min(1)
      .max(MAX_KEYS),
  })
  // A key that is ignored in silence is a client that fails at night.
  .refine((set) => sortKeys(set, ASSERTION_ALGORITHMS)?.ignored.length === 0, {
    error: 'must be public keys for ES256, EdDSA, RS256 or PS256, each with a kid of its own',
  })
  .transform((set) => set as JSONWebKeySet)

/** Members that describe any client. */
export const clientMembers = {
  name: name(128),
  grants: z.array(z.enum(GRANT_TYPES)).min(1),
  scopes: z.array(scopeName).min(1, 'leave it out for no bound').max(100).optional(),
  roles: z.array(name(256)).max(100).optional(),
  audiences: z.array(name(2_048)).min(1).max(20).optional(),
  tenant: name(256).optional(),
  jwks: clientKeys.optional(),
  tokenFormat: z.enum(['jwt', 'opaque']).optional(),
  tokenAlgorithm: z.enum(['ES256', 'RS256', 'EdDSA']).optional(),
  accessTokenSeconds: accessTokenSeconds.optional(),
  dpopBound: z.boolean().optional(),
}

/** What an operator says of a new client: the body of `POST /-/admin/clients`. */
export const newClientSchema = z.strictObject(clientMembers)
export type NewClient = z.infer<typeof newClientSchema>

const configuredClient = z
  .strictObject({
    ...clientMembers,
    id: z.uuid('must be a UUID').toLowerCase(),
    name: clientMembers.name.optional(),
    secretSha256: octets
      .refine(({ length }) => length === SHA256_BYTES, 'must be the base64url of 32 bytes')
      .optional(),
  })
  .refine((client) => (client.secretSha256 === undefined) !== (client.jwks === undefined), {
    error: 'needs exactly one of secretSha256 and jwks',
  })

/** One client of the configuration. `secretSha256` are bytes. */
export type ConfiguredClient = z.output<typeof configuredClient>

/** `CLIENTS`: clients that are there before any operator can create one. */
export const configuredClients = z.array(configuredClient).superRefine((list, context) => {
  for (const [index, { id }] of list.entries()) {
    if (list.findIndex((other) => other.id === id) < index) {
      context.addIssue({ code: 'custom', path: [index, 'id'], message: 'stands there twice' })
    }
  }
})

const CLIENT_ID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/

/** Whether a text can be a `client_id` at all: a UUID in lower case. */
export function isClientId(text: string): boolean {
  return CLIENT_ID.test(text)
}

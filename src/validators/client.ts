/** OAuth clients as operators define them: in `CLIENTS`, and in the body of an API call. */
import type { JSONWebKeySet } from 'jose'
import * as z from 'zod'
import { accessTokenSeconds } from './access-token.ts'
import { octets, sortKeys } from './jwk.ts'
import { name, scopeName } from './names.ts'
import { SIGNING_ALGORITHMS } from './signing-jwk.ts'

/** Grant types of the token endpoint (RFC 6749 sections 4.4 and 6, RFC 8693). */
export const GRANT_TYPES = [
  'client_credentials',
  'refresh_token',
  'urn:ietf:params:oauth:grant-type:token-exchange',
] as const

/** Signature algorithms of `private_key_jwt` assertions (RFC 7523), asymmetric only. */
export const ASSERTION_ALGORITHMS = ['ES256', 'Ed25519', 'EdDSA', 'RS256', 'PS256'] as const

const SHA256_BYTES = 32
const MAX_KEYS = 10

const clientKeys = z
  .strictObject({
    keys: z
      .array(z.looseObject({ kty: z.string() }))
      .min(1)
      .max(MAX_KEYS),
  })
  // An unusable key that is silently ignored would make the client fail later.
  .refine((set) => sortKeys(set, ASSERTION_ALGORITHMS)?.ignored.length === 0, {
    error: `must be public keys for ${ASSERTION_ALGORITHMS.join(', ')}, each with a unique kid`,
  })
  .transform((set) => set as JSONWebKeySet)

/** Members that every client may have. */
export const clientMembers = {
  name: name(128),
  grants: z.array(z.enum(GRANT_TYPES)).min(1),
  scopes: z
    .array(scopeName)
    .min(1, 'must not be empty; omit it for no restriction')
    .max(100)
    .optional(),
  roles: z.array(name(256)).max(100).optional(),
  audiences: z.array(name(2_048)).min(1).max(20).optional(),
  tenant: name(256).optional(),
  jwks: clientKeys.optional(),
  tokenFormat: z.enum(['jwt', 'opaque']).optional(),
  tokenAlgorithm: z.enum(SIGNING_ALGORITHMS).optional(),
  accessTokenSeconds: accessTokenSeconds.optional(),
  dpopBound: z.boolean().optional(),
}

/** The body of `POST /-/admin/clients`. */
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
    error: 'requires exactly one of secretSha256 and jwks',
  })

/** One client of the configuration. `secretSha256` is decoded to bytes. */
export type ConfiguredClient = z.output<typeof configuredClient>

/** `CLIENTS`: clients that exist before an operator creates any. */
export const configuredClients = z.array(configuredClient).superRefine((list, context) => {
  for (const [index, { id }] of list.entries()) {
    if (list.findIndex((other) => other.id === id) < index) {
      context.addIssue({ code: 'custom', path: [index, 'id'], message: 'duplicate client id' })
    }
  }
})

const CLIENT_ID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/

/** Reports whether a text has the format of a `client_id`: a UUID in lower case. */
export function isClientId(text: string): boolean {
  return CLIENT_ID.test(text)
}

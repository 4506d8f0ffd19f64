/** OAuth clients: their data, and the port of the registry. */

import * as z from 'zod/mini'
import type { Principal } from '../../access/principal.ts'
import { principalOfGrant } from '../../access/tokens/access-grant.ts'
import { createExchange } from '../../isolate/exchange.ts'
import { integer } from '../../validators/schema-parts.ts'
import {
  clientMembers,
  type GRANT_TYPES,
  hasKeyForFapi,
  NO_FAPI_KEY,
  type SecurityProfile,
} from './schemas/client.ts'

export { GRANT_TYPES } from './schemas/client.ts'
export { type NewClient, newClientSchema } from './schemas/new-client.ts'

export type GrantType = (typeof GRANT_TYPES)[number]

const seconds = integer().check(z.minimum(0))

const secretSchema = z.strictObject({
  /** base64url SHA-256 of the secret. */
  hash: z.string(),
  /** When the secret expires, in seconds since the epoch. Null: never. */
  untilSeconds: z.nullable(seconds),
})

export type ClientSecretHash = z.output<typeof secretSchema>

/** A client (RFC 6749 section 2.1). Times are whole seconds since the epoch. */
export const clientSchema = z.strictObject({
  /** `client_id`. */
  id: z.string(),
  name: z.string(),
  grants: clientMembers.grants,
  /** The most scopes that its tokens may have. Undefined: the client sets no bound. */
  scopes: clientMembers.scopes,
  /** Roles of the client's own tokens (client credentials), not of users that it acts for. */
  roles: z.array(z.string()),
  /** Allowed values of `resource` and `audience`. The first is the default. */
  audiences: z.array(z.string()).check(z.minLength(1)),
  tenant: z.optional(z.string()),
  /** Empty for a client that authenticates only by `private_key_jwt`. */
  secrets: z.array(secretSchema),
  /** Public keys for `private_key_jwt` (RFC 7523). */
  jwks: clientMembers.jwks,
  tokenFormat: z.enum(['jwt', 'opaque']),
  /** Algorithm of its JWTs. Undefined: that of the first active key. */
  tokenAlgorithm: clientMembers.tokenAlgorithm,
  /** Undefined: as the policy says. */
  accessTokenSeconds: clientMembers.accessTokenSeconds,
  /** Whether its tokens must be bound to a key (RFC 9449 section 5.2). */
  dpopBound: z.boolean(),
  /** The security profile whose rules apply to it. Undefined: that of the server, if any. */
  profile: clientMembers.profile,
  /** Undefined: the client may not use the authorization endpoint. */
  redirectUris: clientMembers.redirectUris,
  /** Whether it has no secret and no key. Undefined: it is confidential. */
  public: clientMembers.public,
  disabled: z.boolean(),
  createdAtSeconds: seconds,
  /** The operator who created it. Undefined: it is configured, has registered itself, or is of an earlier version. */
  createdBy: z.optional(z.string()),
  createdByName: z.optional(z.string()),
  /** True if the client is configured in `CLIENTS`. The API cannot change it. */
  configured: z.boolean(),
})

export type Client = Readonly<z.output<typeof clientSchema>>

/**
 * Reports whether `client` may act for a subject of this tenant. A client with a tenant acts for
 * that tenant alone: operators of a tenant can create clients, and must not turn a stolen token of
 * another tenant into a session. A tenant is a name at an issuer. The issuer of the subject must
 * therefore share its tenants with the gateway (docs/decisions/0046).
 */
export function mayActFor(
  client: Client,
  { issuer, tenant }: Pick<Principal, 'issuer' | 'tenant'>,
  tenantIssuers: ReadonlySet<string>,
): boolean {
  if (client.tenant === undefined) return true
  return client.tenant === tenant && tenantIssuers.has(issuer)
}

/**
 * Reports whether a client must authenticate by `private_key_jwt`, push its requests, and use bound tokens
 * (FAPI 2.0). The profile of the server leaves out clients that can act for no user, such as the command
 * line of operators, which has a secret.
 */
export function followsFapi(
  client: Pick<Client, 'profile' | 'grants'>,
  profile: SecurityProfile | undefined,
): boolean {
  if (client.profile === 'fapi2') return true
  return profile === 'fapi2' && client.grants.some((grant) => grant !== 'client_credentials')
}

/**
 * Returns why a client could never log in. Undefined: it can. A server with the profile accepts neither a
 * secret nor no credential of a client that acts for users, and RS256 of none.
 */
export const unusableWithout = (
  client: Pick<Client, 'profile' | 'grants' | 'jwks'>,
  profile: SecurityProfile | undefined,
): string | undefined =>
  client.jwks === undefined
    ? followsFapi(client, profile)
      ? `is missing; with the profile ${profile}, clients that act for users authenticate by private_key_jwt`
      : undefined
    : profile === undefined || hasKeyForFapi(client.jwks)
      ? undefined
      : NO_FAPI_KEY

/** The security profile of the authorization server, for the operators who create its clients. */
export const SERVER_PROFILE = createExchange<SecurityProfile>()

/** Returns the principal of a client for the audit trail, before any token exists. */
export function principalOfClient({ id, tenant, roles }: Client, issuer: string): Principal {
  return principalOfGrant(
    { subject: id, client: id, tenant, roles, scopes: [], audiences: [] },
    issuer,
  )
}

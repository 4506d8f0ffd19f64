/** OAuth clients: their data, and the port of the registry. */
import type { JSONWebKeySet } from 'jose'
import type { Principal } from '../identity/principal.ts'
import { principalOfGrant } from '../tokens/access-grant.ts'
import type { GRANT_TYPES, NewClient } from '../validators/client.ts'
import type { SigningAlgorithm } from '../validators/signing-jwk.ts'

export { GRANT_TYPES, type NewClient, newClientSchema } from '../validators/client.ts'

export type GrantType = (typeof GRANT_TYPES)[number]

/**
 * The hash of a client's secret, and when the secret expires, in seconds since the epoch. Null:
 * never.
 */
export interface ClientSecretHash {
  /** base64url SHA-256 of the secret. */
  readonly hash: string
  readonly untilSeconds: number | null
}

/** A confidential client (RFC 6749 section 2.1). Times are whole seconds since the epoch. */
export interface Client {
  /** `client_id`. */
  readonly id: string
  readonly name: string
  readonly grants: readonly GrantType[]
  /** The most scopes that its tokens may have. Undefined: the client sets no bound. */
  readonly scopes: readonly string[] | undefined
  /**
   * Roles of the client's own tokens (client credentials). They do not apply to users that it acts
   * for.
   */
  readonly roles: readonly string[]
  /** Allowed values of `resource` and `audience`. The first is the default. At least one. */
  readonly audiences: readonly string[]
  readonly tenant: string | undefined
  /** Empty for a client that authenticates only by `private_key_jwt`. */
  readonly secrets: readonly ClientSecretHash[]
  /** Public keys for `private_key_jwt` (RFC 7523). */
  readonly jwks: JSONWebKeySet | undefined
  /** Default `jwt`. */
  readonly tokenFormat: 'jwt' | 'opaque'
  /** Algorithm of its JWTs. Undefined: that of the first active key. */
  readonly tokenAlgorithm: SigningAlgorithm | undefined
  /** Life of its access tokens, 300 to 3600 s. Undefined: as the policy says. */
  readonly accessTokenSeconds: number | undefined
  /**
   * Whether its tokens must be bound to a key (RFC 9449 section 5.2, `dpop_bound_access_tokens`).
   */
  readonly dpopBound: boolean
  readonly disabled: boolean
  readonly createdAtSeconds: number
  /** True if the client is configured in `CLIENTS`. The API cannot change it. */
  readonly configured: boolean
}

/** Port: the clients. Throws `Unavailable` if the store cannot read or write. */
export interface ClientRegistry {
  find(id: string): Promise<Client | undefined>
  /** Returns a page of clients, newest first, with configured clients at the end. */
  list(page: { readonly limit: number; readonly cursor?: string | undefined }): Promise<{
    readonly clients: readonly Client[]
    readonly cursor?: string
  }>
  /**
   * Creates a client. The secret is 256 random bits, which are returned only here and not stored.
   * Undefined for a client with `jwks`.
   */
  create(
    client: NewClient,
  ): Promise<{ readonly client: Client; readonly secret: string | undefined }>
  /**
   * Creates a new secret. The old ones stay valid for `graceSeconds` (0: they end now). Returns
   * undefined if the client does not exist, or has no secret to rotate: it is configured, or has
   * `jwks`.
   */
  rotateSecret(id: string, graceSeconds: number): Promise<string | undefined>
  /**
   * Disables a client: it gets no more tokens, refresh tokens included. Returns false if the client
   * does not exist, or is configured.
   */
  disable(id: string): Promise<boolean>
}

/**
 * Reports whether `client` may act for a subject of this tenant. A client with a tenant acts for
 * that tenant alone, because a tenant's operators can create clients. They must not be able to turn
 * a stolen token of another tenant into a session. A tenant is a name at an issuer. The issuer of
 * the subject must therefore share its tenants with the gateway (docs/decisions/0046).
 */
export function mayActFor(
  client: Client,
  { issuer, tenant }: Pick<Principal, 'issuer' | 'tenant'>,
  tenantIssuers: ReadonlySet<string>,
): boolean {
  if (client.tenant === undefined) return true
  return client.tenant === tenant && tenantIssuers.has(issuer)
}

/** Returns the principal of a client for the audit trail, before any token exists. */
export function principalOfClient({ id, tenant, roles }: Client, issuer: string): Principal {
  return principalOfGrant(
    { subject: id, client: id, tenant, roles, scopes: [], audiences: [] },
    issuer,
  )
}

/** OAuth clients: what is known of them, and the port that keeps them. */
import type { JSONWebKeySet } from 'jose'
import type { GRANT_TYPES, NewClient } from '../validators/client.ts'

export { GRANT_TYPES, type NewClient, newClientSchema } from '../validators/client.ts'

export type GrantType = (typeof GRANT_TYPES)[number]

/** Hash of a secret that opens this client, and until when (seconds since the epoch; null: ever). */
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
  /** The most that its tokens may have as scope; undefined: no bound of its own. */
  readonly scopes: readonly string[] | undefined
  /** Roles of the client's own tokens (client credentials). Not those of users it acts for. */
  readonly roles: readonly string[]
  /** What `resource` and `audience` may name; the first is the default. At least one. */
  readonly audiences: readonly string[]
  readonly tenant: string | undefined
  /** Empty for a client that authenticates by `private_key_jwt` only. */
  readonly secrets: readonly ClientSecretHash[]
  /** Public keys for `private_key_jwt` (RFC 7523). */
  readonly jwks: JSONWebKeySet | undefined
  /** Default `jwt`. */
  readonly tokenFormat: 'jwt' | 'opaque'
  /** Of its JWTs; undefined: that of the first active key. */
  readonly tokenAlgorithm: 'ES256' | 'RS256' | 'EdDSA' | undefined
  /** Life of its access tokens, 300 to 3600; undefined: the policy's. */
  readonly accessTokenSeconds: number | undefined
  /** Its tokens must be bound to a key (RFC 9449 section 5.2, `dpop_bound_access_tokens`). */
  readonly dpopBound: boolean
  readonly disabled: boolean
  readonly createdAtSeconds: number
  /** Configured in `CLIENTS` rather than created: the API can't change it. */
  readonly configured: boolean
}

/** Port: the clients. Throws `Unavailable` when the store cannot tell. */
export interface ClientRegistry {
  find(id: string): Promise<Client | undefined>
  /** Newest first, those of the configuration at the end. */
  list(page: { readonly limit: number; readonly cursor?: string | undefined }): Promise<{
    readonly clients: readonly Client[]
    readonly cursor?: string
  }>
  /** The secret is 256 random bits, shown here and kept nowhere; undefined for a client with `jwks`. */
  create(
    client: NewClient,
  ): Promise<{ readonly client: Client; readonly secret: string | undefined }>
  /**
   * A new secret; the old ones go on for `graceSeconds` (0: end now). Undefined: no such client, or
   * one that has no secret to rotate (it is configured, or has `jwks`).
   */
  rotateSecret(id: string, graceSeconds: number): Promise<string | undefined>
  /**
   * Ends a client: it gets no more tokens, refresh tokens included. False: no such client, or one
   * of the configuration.
   */
  disable(id: string): Promise<boolean>
}

/** An entry of `CLIENTS` as a user writes it. Its comments are the descriptions in the JSON Schema. */
import type { JWK } from 'jose'
import type { SigningAlgorithm } from '../../../validators/signing-jwk.ts'
import type { GRANT_TYPES, SecurityProfile } from './client.ts'

interface ClientKeysInput {
  /** Public keys for ES256, Ed25519, EdDSA, RS256 or PS256, 1 to 10 of them, each with a `kid`. */
  readonly keys: readonly JWK[]
}

/** An OAuth client that exists before an operator creates any. */
export interface ClientInput {
  /** `client_id`: a UUID. */
  readonly id: string
  /** The name for operators. Default: the id. */
  readonly name?: string | undefined
  /** Grants that the client may use at the token endpoint. */
  readonly grants: readonly (typeof GRANT_TYPES)[number][]
  /** base64url of the SHA-256 of the client's secret, 43 characters: see `portcullis clients hash-secret`. */
  readonly secretSha256?: string | undefined
  /** Public keys with which the client authenticates by `private_key_jwt`, in place of a secret. */
  readonly jwks?: ClientKeysInput | undefined
  /** The largest scope of the client's tokens; `orders:*` covers everything below `orders:`. Default: no bound. */
  readonly scopes?: readonly string[] | undefined
  /** Roles of the client's own tokens. They do not apply to the users that it acts for. Default none. */
  readonly roles?: readonly string[] | undefined
  /** Permitted values of `resource` and `audience`; the first is the default. Default: the URL of the gateway. */
  readonly audiences?: readonly string[] | undefined
  /** Tenant of the client's own tokens, and the only tenant of tokens that it may exchange. Default none. */
  readonly tenant?: string | undefined
  /** The form of the client's access tokens. Default `jwt`. */
  readonly tokenFormat?: 'jwt' | 'opaque' | undefined
  /** Algorithm of the client's tokens; a key in `SIGNING_KEYS` must have it. Default: that of the first active key. */
  readonly tokenAlgorithm?: SigningAlgorithm | undefined
  /** Life of the client's access tokens, 300 to 3,600 seconds. Default: that of the policy. */
  readonly accessTokenSeconds?: number | undefined
  /** Whether the client's tokens must be bound to a key (RFC 9449). Default false. */
  readonly dpopBound?: boolean | undefined
  /** `fapi2`: the rules of FAPI 2.0 for this client. Needs `jwks`. Default none. */
  readonly profile?: SecurityProfile | undefined
  /** Where users return to after `/oauth/authorize`. Required for the grant `authorization_code`, and only for it. */
  readonly redirectUris?: readonly string[] | undefined
  /** Whether the client has neither a secret nor keys. Default false. */
  readonly public?: boolean | undefined
}

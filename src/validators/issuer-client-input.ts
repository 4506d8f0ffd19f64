/** An entry of `ISSUER_CLIENTS` as a user writes it. Its comments are the descriptions in the JSON Schema. */
import type { JWK } from 'jose'

interface IssuerClientKeyInput extends JWK {
  /** The key signs from this time on, in seconds since the epoch. Default: from the start. */
  readonly nbf?: number | undefined
  /** The key signs until this time, in seconds since the epoch. Default: without an end. */
  readonly exp?: number | undefined
}

/** The gateway as a client of an issuer, with a secret or with a key. */
export interface IssuerClientInput {
  /** The issuer, as in `ISSUERS`. */
  readonly issuer: string
  /** `client_id` of the gateway at the issuer. */
  readonly id: string
  /** The secret of the client. */
  readonly secret?: string | undefined
  /** How the secret is sent (RFC 6749 section 2.3.1). Default `client_secret_basic`. */
  readonly method?: 'client_secret_basic' | 'client_secret_post' | undefined
  /** In place of a secret: a private JWK for ES256, RS256 or EdDSA, for `private_key_jwt` (RFC 7523). */
  readonly key?: IssuerClientKeyInput | undefined
  /** `aud` of the assertions that the key signs. Default: the issuer. */
  readonly audience?: string | undefined
}

/** Shared signals as a user configures them, and their defaults. */
import type { SignalAction } from './action.ts'
import type { EventName } from './event-types.ts'

export interface TransmitterDefinition {
  /** `iss` of its security event tokens. */
  readonly issuer: string
  /** Accepted values of `aud`. */
  readonly audience: string | readonly string[]
  /**
   * The action of each event type; others keep their default. A list names the only types that have an
   * effect. Types have their short names (`session-revoked`) or their URIs.
   */
  readonly events?: readonly string[] | Readonly<Partial<Record<EventName, SignalAction>>>
  /**
   * Trusted issuers whose subjects the transmitter may affect. Default: `issuer`, which must then be in
   * `ISSUERS`.
   */
  readonly subjectsOf?: readonly string[]
  /** The URL of its keys. Default: those of `issuer` in `ISSUERS`, or else of the transmitter's metadata. */
  readonly jwksUri?: string
  /** Default RS256, PS256, ES256, Ed25519 and EdDSA, or those of `issuer` in `ISSUERS`. */
  readonly algorithms?: readonly string[]
  /** An older event is refused: 60 to 2,592,000 seconds. Default 86,400 (one day). */
  readonly maxAgeSeconds?: number
  /**
   * Fetches events from the transmitter (RFC 8936), in addition to pushed ones. Default: only pushed ones.
   */
  readonly poll?: PollDefinition
}

interface PollDefinition {
  /** `endpoint_url` of the stream. */
  readonly url: string
  /** All gateways together poll once in this time, 5 to 3,600 seconds. Default 30. */
  readonly everySeconds?: number
}

export interface SignalsDefinition {
  /** 1 to 16 transmitters. */
  readonly transmitters: readonly TransmitterDefinition[]
  /** Requests of one address to the receiver in a minute. Default 6,000. */
  readonly requestsPerMinute?: number
}

export const DEFAULT_POLL_SECONDS = 30
export const DEFAULT_MAX_AGE_SECONDS = 86_400
/** A transmitter may report the end of all sessions of a company at once. */
export const DEFAULT_REQUESTS_PER_MINUTE = 6_000
/** The life of a ban: the longest that operators' calls allow. */
export const BAN_SECONDS = 31_536_000

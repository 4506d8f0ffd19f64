import { sha256 } from '../../crypto/sha256.ts'
import { thumbprintOf } from '../../crypto/thumbprint.ts'
import { Denied, Misconfigured } from '../../errors.ts'
import { createLruMap } from '../../isolate/lru-map.ts'
import type { Check } from '../../problems/checks.ts'
import { mistakeAt } from '../../problems/mistake.ts'
import { type DpopClaims, dpopClaims, dpopHeader } from '../../validators/dpop.ts'
import { mediaType } from '../../validators/issuer.ts'
import { withoutNulls } from '../../validators/jwk.ts'
import { createDpopNonces } from './dpop-nonce.ts'
import {
  parseHeader,
  readHeaderMembers,
  readPayload,
  refuseMalformed,
  verifySignature,
} from './jws.ts'
import { importKeys, type VerificationKey } from './key-ring.ts'

export { nonceSecretOf } from './dpop-nonce.ts'

export interface DpopProof {
  /** base64url SHA-256 thumbprint of the proof's key (RFC 7638). Compare it with `cnf.jkt`. */
  readonly thumbprint: string
  /** Identifies the proof: base64url SHA-256 of its key and its `jti`. */
  readonly replayId: string
  /** After it, the proof is too old for every gateway. */
  readonly replayTtlSeconds: number
}

/** What a proof must be for. */
export interface DpopRequest {
  readonly method: string
  /** The URL of the request as it arrived. Its query and fragment are ignored. */
  readonly url: string
  /** The values of all `DPoP` headers, joined by `, ` as the platform does. */
  readonly header: string | undefined
  /** The access token of the request (`ath`). Absent at the token endpoint. */
  readonly token?: string
}

export interface DpopVerifier {
  /**
   * Verifies a proof (RFC 9449 section 4.3). Throws `Denied`: `invalid_dpop_proof`, or
   * `use_dpop_nonce` with a valid nonce. Does NOT check that the proof is new, nor that its key
   * is the token's. The caller must do both, by `replayId` and `thumbprint`.
   */
  verify(request: DpopRequest): Promise<DpopProof>
  /** Returns a nonce for the client's next proofs (RFC 9449 section 8.2). Throws without a secret. */
  nonce(): Promise<string>
}

export interface DpopVerifierOptions {
  /** The URL of the gateway. Proofs must be for its origin. */
  readonly publicUrl: string
  /** See `nonceSecretOf`. Undefined: there are no nonces, and that of a proof is ignored. */
  readonly nonceSecret: string | undefined
  /** Whether a proof without a nonce is refused. Requires a secret. */
  readonly nonceRequired: boolean
  /** Milliseconds since the epoch. */
  readonly now?: () => number
}

/** A proof arrives within milliseconds. The minute is for clients with a late clock. */
const MAX_PROOF_AGE_SECONDS = 60
/** For clients with a clock that is ahead (FAPI 2.0 section 5.3.2.1). */
const MAX_PROOF_AHEAD_SECONDS = 10
/** The largest difference between the clocks of two gateways. */
export const MAX_GATEWAY_SKEW_SECONDS = 15
/** From the first moment at which a gateway accepts a proof to the last at which another does. */
const PROOF_REPLAY_TTL_SECONDS =
  MAX_PROOF_AHEAD_SECONDS + MAX_PROOF_AGE_SECONDS + MAX_GATEWAY_SKEW_SECONDS

/** Creates the verifier. Throws `Misconfigured` if nonces are required without a secret. */
export function createDpopVerifier({
  publicUrl,
  nonceSecret,
  nonceRequired,
  now = () => Date.now(),
}: DpopVerifierOptions): DpopVerifier {
  if (nonceRequired && nonceSecret === undefined) {
    throw new Misconfigured('The policy', [
      mistakeAt('missing', ['tokens', 'dpopNonceRequired'], 'needs SIGNING_KEYS'),
    ])
  }
  const publicOrigin = new URL(publicUrl).origin
  const keys = createProofKeys()
  const nonces = nonceSecret === undefined ? undefined : createDpopNonces(nonceSecret, now)

  async function read(proof: string) {
    try {
      const proofKey = await keys.find(proof)
      await verifySignature(proof, proofKey.key)
      keys.keep(proof, proofKey)
      const parsed = dpopClaims.safeParse(withoutNulls(readPayload(proof)))
      if (parsed.success) return { claims: parsed.data, thumbprint: proofKey.thumbprint }
      throw dpopRejected(parsed.error.issues[0]?.path[0] as keyof DpopClaims)
    } catch (error) {
      throw asDpopRejection(error)
    }
  }

  async function refuseNonce(nonce: string | undefined): Promise<void> {
    if (nonces === undefined) return
    const isAccepted = nonce === undefined ? !nonceRequired : await nonces.accepts(nonce)
    if (!isAccepted) throw new Denied({ code: 'use_dpop_nonce', nonce: await nonces.current() })
  }

  return {
    async verify({ method, url, header, token }) {
      if (header === undefined) throw dpopRejected('missing')
      if (header.includes(',')) throw dpopRejected('multiple')
      const { claims, thumbprint } = await read(header)
      if (claims.htm !== method) throw dpopRejected('htm')
      if (!isTarget(claims.htu, url, publicOrigin)) throw dpopRejected('htu')
      const nowSeconds = now() / 1000
      const { iat, exp = Infinity, nbf = iat } = claims
      const ageSeconds = nowSeconds - iat
      if (ageSeconds > MAX_PROOF_AGE_SECONDS || ageSeconds < -MAX_PROOF_AHEAD_SECONDS) {
        throw dpopRejected('iat')
      }
      // RFC 9449 has neither. A client may still shorten the life of its proof (RFC 7519 section 4.1).
      if (exp <= nowSeconds - MAX_PROOF_AHEAD_SECONDS) throw dpopRejected('exp')
      if (nbf > nowSeconds + MAX_PROOF_AHEAD_SECONDS) throw dpopRejected('nbf')
      if (token !== undefined && claims.ath !== (await sha256(token))) throw dpopRejected('ath')
      await refuseNonce(claims.nonce)
      return {
        thumbprint,
        replayId: await sha256(JSON.stringify([thumbprint, claims.jti])),
        replayTtlSeconds: PROOF_REPLAY_TTL_SECONDS,
      }
    },
    async nonce() {
      if (nonces === undefined) throw new Error('nonce: the verifier has no secret')
      return nonces.current()
    },
  }
}

/** The check of RFC 9449 section 4.3 that a proof failed. Never sent to the client. */
function dpopRejected(check: Check<'invalid_dpop_proof'>, options?: ErrorOptions): Denied {
  return new Denied({ code: 'invalid_dpop_proof', check }, options)
}

/** Converts the refusal of a token to that of a proof. Returns any other error unchanged. */
function asDpopRejection(error: unknown): unknown {
  if (!(error instanceof Denied) || error.denial.code !== 'token_rejected') return error
  return new Denied({ code: 'invalid_dpop_proof', check: error.denial.check }, { cause: error })
}

/** RFC 3986 section 2: a URI is ASCII, without spaces or backslashes. */
const HTTP_URI = /^https?:\/\/[\x21\x23-\x5b\x5d-\x7e]+$/i
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/
const UNRESERVED = /^[\w.~-]$/

/**
 * Reports whether `htu` names the target of a request to `url`, without query and fragment. Both
 * are normalized first (RFC 3986 sections 6.2.2 and 6.2.3): case of scheme and host, the default
 * port, dot segments, percent-encoding. The origin must be `publicOrigin`, because a Worker may
 * also be reachable by other names. If that is a loopback host, the request's own loopback origin is
 * accepted too. `Host` alone cannot make it one: a client chooses it.
 */
function isTarget(htu: string, url: string, publicOrigin: string): boolean {
  if (!HTTP_URI.test(htu)) return false
  const claimed = URL.parse(htu)
  const requested = URL.parse(url)
  if (claimed === null || requested === null) return false
  if (claimed.username !== '' || claimed.password !== '') return false
  if (normalizePath(claimed) !== normalizePath(requested)) return false
  if (claimed.origin === publicOrigin) return true
  return (
    LOOPBACK.test(new URL(publicOrigin).hostname) &&
    LOOPBACK.test(requested.hostname) &&
    claimed.origin === requested.origin
  )
}

/** Returns the path with percent-encoding only where it is needed, in upper case. */
function normalizePath({ pathname }: URL): string {
  return pathname.replace(/%[\da-f]{2}/gi, (encoded) => {
    const character = String.fromCharCode(Number.parseInt(encoded.slice(1), 16))
    return UNRESERVED.test(character) ? character : encoded.toUpperCase()
  })
}

/** A public key from the header of a proof, and its thumbprint. */
interface ProofKey {
  readonly thumbprint: string
  readonly key: VerificationKey
}

/** An estimate of the clients that an isolate serves at a time. Each has one key. */
const MAX_KEYS = 500
/** A proof is in a field of the request. With the largest keys, it has some 3 KB. */
const MAX_PROOF_BYTES = 8_192
/** The header with an RSA key of 4096 bits has 1,100. */
const MAX_KEPT_CHARS = 1_536

/**
 * Creates a cache of proof keys. All proofs of a client have the same header text, so the key is
 * cached by that text. Parsing and importing a key costs almost as much as verifying the signature.
 * Results of verification are NOT cached.
 */
export function createProofKeys() {
  const kept = createLruMap<string, ProofKey>({ max: MAX_KEYS })
  return {
    /** Returns the key of a proof. Throws `Denied`. Does NOT verify the signature. */
    async find(proof: string): Promise<ProofKey> {
      refuseMalformed(proof, MAX_PROOF_BYTES)
      return kept.get(headerTextOf(proof)) ?? importProofKey(proof)
    },
    /** Caches the key of a proof. The signature of the proof must be verified. */
    keep(proof: string, key: ProofKey): void {
      const header = headerTextOf(proof)
      if (header.length <= MAX_KEPT_CHARS) kept.set(header, key)
    },
  }
}

function headerTextOf(proof: string): string {
  return proof.slice(0, proof.indexOf('.'))
}

/**
 * Imports the key in a proof's header. It must be public, asymmetric, for exactly the proof's
 * algorithm, and as strong as keys of issuers must be (see `sortKeys`). RSA keys have at most 4096
 * bits. Throws `Denied`, with `token_rejected` for some of the failures.
 */
async function importProofKey(proof: string): Promise<ProofKey> {
  const members = readHeaderMembers(proof)
  const { typ = '' } = parseHeader(members)
  if (mediaType(typ) !== 'dpop+jwt') throw dpopRejected('typ')
  const parsed = dpopHeader.safeParse(members)
  if (!parsed.success) {
    throw dpopRejected(parsed.error.issues[0]?.path[0] as 'alg' | 'jwk')
  }
  const { alg, jwk } = parsed.data
  const imported = await importKeys({ keys: [jwk] }, [alg])
  const [key] = imported?.ring ?? []
  if (key === undefined) throw dpopRejected(`jwk_${imported?.ignored[0]?.check ?? 'set'}`)
  return { thumbprint: await thumbprintOf(jwk), key }
}

/** Nonces for DPoP proofs (RFC 9449 sections 8 and 9), without storage. */
import { base64url } from 'jose'
import { derivedHmacKey } from '../../crypto/sha256.ts'
import type { SigningJwk } from './signing-keys.ts'

/** A nonce changes after this time. Within it, all clients get the same one. */
const STEP_SECONDS = 60
/** A nonce is valid for at least 5 minutes and at most 6. */
const MAX_AGE_STEPS = 5
/** The clock of another gateway may be ahead. */
const MAX_AHEAD_STEPS = 1

const NONCE = /^([1-9a-z][\da-z]{0,9})\.([\w-]{43})$/
const STEP_RADIX = 36
const PURPOSE = 'portcullis dpop nonce'

/**
 * Returns the secret that gateways with the same keys share for nonces: the private half of the
 * last key. Adding a new key at the front does not change it.
 */
export function nonceSecretOf(keys: readonly SigningJwk[]): string | undefined {
  return keys.at(-1)?.d
}

/**
 * Creates the nonces. A nonce is the number of a minute and an HMAC over it. The HMAC key is
 * derived from the secret (HKDF), so every gateway with that secret accepts the nonce. A nonce
 * shows when a proof was made. Replays are detected by `jti`, not by the nonce.
 */
export function createDpopNonces(secret: string, now: () => number) {
  const encoder = new TextEncoder()
  let hmacKey: CryptoKey | undefined
  let last: { readonly step: number; readonly nonce: string } | undefined

  const currentStep = () => Math.floor(now() / (STEP_SECONDS * 1000))

  return {
    /** Returns the nonce of the present minute. */
    async current(): Promise<string> {
      const step = currentStep()
      if (last?.step === step) return last.nonce
      hmacKey ??= await derivedHmacKey(secret, PURPOSE)
      const counter = step.toString(STEP_RADIX)
      const mac = await crypto.subtle.sign('HMAC', hmacKey, encoder.encode(counter))
      const nonce = `${counter}.${base64url.encode(new Uint8Array(mac))}`
      last = { step, nonce }
      return nonce
    },
    /** Reports in constant time whether `nonce` has this secret and is at most 5 minutes old. */
    async accepts(nonce: string): Promise<boolean> {
      const [, counter, mac] = NONCE.exec(nonce) ?? []
      if (counter === undefined || mac === undefined) return false
      const age = currentStep() - Number.parseInt(counter, STEP_RADIX)
      if (age > MAX_AGE_STEPS || age < -MAX_AHEAD_STEPS) return false
      hmacKey ??= await derivedHmacKey(secret, PURPOSE)
      const bytes = base64url.decode(mac)
      return crypto.subtle.verify('HMAC', hmacKey, bytes, encoder.encode(counter))
    },
  }
}

/** Nonces for DPoP proofs (RFC 9449 sections 8 and 9), without storage. */
import { base64url } from 'jose'
import type { SigningJwk } from './signing-keys.ts'

/** Nonces change this often; within it, everybody gets the same one. */
export const DPOP_NONCE_STEP_SECONDS = 60
/** A nonce is good for 5 minutes at least, and for 6 at most. */
const MAX_AGE_STEPS = 5
/** Another gateway's clock may be ahead. */
const MAX_AHEAD_STEPS = 1

const NONCE = /^([1-9a-z][\da-z]{0,9})\.([\w-]{43})$/
const STEP_RADIX = 36
const HMAC = { name: 'HMAC', hash: 'SHA-256', length: 256 }
/** Keeps this use of the secret apart from every other (RFC 5869 section 3.2). */
const PURPOSE = 'portcullis dpop nonce'

export interface DpopNonces {
  /** The nonce of this minute. */
  current(): Promise<string>
  /** Whether `nonce` was made with the same secret in the last 5 minutes. Takes constant time. */
  accepts(nonce: string): Promise<boolean>
}

/**
 * What gateways with the same keys make nonces with: the private half of the last key, which a new
 * key in front leaves where it is. Undefined without keys.
 */
export function nonceSecretOf(keys: readonly SigningJwk[]): string | undefined {
  return keys.at(-1)?.d
}

/**
 * A nonce is the number of a minute and an HMAC over it, whose key is derived from the secret
 * (HKDF): every gateway with that secret knows its own again. It says when a proof was made, not
 * that it was used but once: for that there is `jti`.
 */
export function createDpopNonces(secret: string, now: () => number): DpopNonces {
  const encoder = new TextEncoder()
  let hmacKey: CryptoKey | undefined
  let last: { readonly step: number; readonly nonce: string } | undefined

  const currentStep = () => Math.floor(now() / (DPOP_NONCE_STEP_SECONDS * 1000))

  async function derive(): Promise<CryptoKey> {
    const material = await crypto.subtle.importKey('raw', encoder.encode(secret), 'HKDF', false, [
      'deriveKey',
    ])
    const hkdf = {
      name: 'HKDF',
      hash: 'SHA-256',
      salt: new Uint8Array(),
      info: encoder.encode(PURPOSE),
    }
    return crypto.subtle.deriveKey(hkdf, material, HMAC, false, ['sign', 'verify'])
  }

  return {
    async current() {
      const step = currentStep()
      if (last?.step === step) return last.nonce
      hmacKey ??= await derive()
      const counter = step.toString(STEP_RADIX)
      const mac = await crypto.subtle.sign('HMAC', hmacKey, encoder.encode(counter))
      const nonce = `${counter}.${base64url.encode(new Uint8Array(mac))}`
      last = { step, nonce }
      return nonce
    },
    async accepts(nonce) {
      const [, counter, mac] = NONCE.exec(nonce) ?? []
      if (counter === undefined || mac === undefined) return false
      const age = currentStep() - Number.parseInt(counter, STEP_RADIX)
      if (age > MAX_AGE_STEPS || age < -MAX_AHEAD_STEPS) return false
      hmacKey ??= await derive()
      const bytes = base64url.decode(mac)
      return crypto.subtle.verify('HMAC', hmacKey, bytes, encoder.encode(counter))
    },
  }
}

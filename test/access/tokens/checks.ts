/** One issuer, one key, and tokens that differ in their claims. */
import { createTokenVerifier } from '../../../src/access/tokens/verifier.ts'
import { createSigner, issuerOf, NOW_MS, outcome } from './signer.ts'

/** `overrides` replace members of the issuer's configuration. */
export async function createChecks() {
  const signer = await createSigner('ES256')
  let nowMs = NOW_MS
  const verifier = (overrides: object) =>
    createTokenVerifier({
      issuers: [issuerOf([signer.publicJwk], overrides)],
      now: () => nowMs,
    })

  /** Returns the principal of a token with the valid claims and these. */
  const verify = async (claims: object, overrides: object = {}, header: object = {}) =>
    verifier(overrides).verify(await signer.token(claims, header))

  const check = (claims: object, overrides: object = {}, header: object = {}) =>
    outcome(() => verify(claims, overrides, header))

  /** Returns the outcome for a payload that is signed unchanged. */
  async function checkText(payload: string | Uint8Array) {
    const header = JSON.stringify({ alg: 'ES256', kid: 'ES256', typ: 'at+jwt' })
    const token = await signer.signRaw(header, payload)
    return outcome(() => verifier({}).verify(token))
  }

  /** Verifies a token at `offsetMs` after now. */
  async function checkAt(offsetMs: number, claims: object = {}) {
    nowMs = NOW_MS + offsetMs
    try {
      return await check(claims)
    } finally {
      nowMs = NOW_MS
    }
  }
  return { signer, verify, check, checkText, checkAt }
}

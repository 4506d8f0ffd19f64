/** One issuer, one key, and tokens that differ in their claims. */
import { createTokenVerifier } from '../../src/tokens/verifier.ts'
import { createSigner, issuerOf, NOW_MS, outcome } from './signer.ts'

/** `overrides` are those of the issuer's configuration. */
export async function createChecks() {
  const signer = await createSigner('ES256')
  let nowMs = NOW_MS
  const verifier = (overrides: object) =>
    createTokenVerifier({
      issuers: [issuerOf([signer.publicJwk], overrides)],
      now: () => nowMs,
    })

  /** The principal of a token with these claims beside the good ones. */
  const verify = async (claims: object, overrides: object = {}) =>
    verifier(overrides).verify(await signer.token(claims))

  const check = (claims: object, overrides: object = {}) => outcome(() => verify(claims, overrides))

  /** What becomes of a payload given as it is. */
  async function checkText(payload: string | Uint8Array) {
    const header = JSON.stringify({ alg: 'ES256', kid: 'ES256', typ: 'at+jwt' })
    const token = await signer.signRaw(header, payload)
    return outcome(() => verifier({}).verify(token))
  }

  /** Checks so many milliseconds after now. */
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

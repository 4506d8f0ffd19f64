/** The hint for a provider about the user who signs in again (OpenID Connect Core section 3.1.2.1). */
import { readPayload } from '../../access/tokens/jws.ts'
import { present } from '../../access/tokens/present.ts'

/** Claims with what a user enters at a login, the best first. */
const NAMES = ['login_hint', 'preferred_username', 'email', 'sub'] as const
const MAX_HINT_CHARACTERS = 320

/** Returns the hint in an ID token that was verified at the login. */
export function loginHintIn(idToken: string): string | undefined {
  const payload = readPayload(idToken)
  return NAMES.map((name) => present(payload, name)).find(
    (value): value is string => typeof value === 'string' && value.length <= MAX_HINT_CHARACTERS,
  )
}

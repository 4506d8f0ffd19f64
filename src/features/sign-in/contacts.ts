/** What the sign-in reports to other features about a login: addresses that the provider has verified. */
import { present } from '../../access/tokens/present.ts'
import { createExchange } from '../../isolate/exchange.ts'

/** Addresses of a user that its provider has verified (OpenID Connect Core section 5.1). */
export interface VerifiedContacts {
  readonly email?: string
  readonly phone_number?: string
}

/** Called with each login, before its session begins. A rejection refuses the login. */
export const CONTACT_OBSERVER =
  createExchange<
    (
      user: { readonly issuer: string; readonly subject: string },
      contacts: VerifiedContacts,
    ) => Promise<void>
  >()

type Claims = Readonly<Record<string, unknown>>

/** Returns the verified addresses in the claims of a user. */
export function contactsIn(claims: Claims): VerifiedContacts {
  const email = verified(claims, 'email')
  const phone = verified(claims, 'phone_number')
  return {
    ...(email !== undefined && { email }),
    ...(phone !== undefined && { phone_number: phone }),
  }
}

/** Some providers send the flag as text. */
function verified(claims: Claims, name: string): string | undefined {
  const value = present(claims, name)
  const flag = present(claims, `${name}_verified`)
  return typeof value === 'string' && (flag === true || flag === 'true') ? value : undefined
}

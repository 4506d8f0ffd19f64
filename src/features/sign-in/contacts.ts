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

const MAX_NAME_CHARACTERS = 100
/** Names of a user in ID tokens (OpenID Connect Core section 5.1), the preferred one first. */
const NAME_CLAIMS = ['name', 'preferred_username']

type Claims = Readonly<Record<string, unknown>>

/** Returns the name of a user, for lists and audit events. The user may have chosen it. */
export function nameIn(claims: Claims): string | undefined {
  for (const claim of NAME_CLAIMS) {
    const value = present(claims, claim)
    if (typeof value !== 'string') continue
    // Without control and format characters, which could change how a list looks.
    const name = value.replaceAll(/[\p{C}\s]+/gu, ' ').trim()
    if (name !== '') return name.slice(0, MAX_NAME_CHARACTERS).toWellFormed()
  }
  return undefined
}

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

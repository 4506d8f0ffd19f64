/** Which providers say when a user signed in, for routes that demand a recent sign-in. */

import { authTimeText } from '../../src/identity-providers/auth-times.ts'
import { jsonIn } from '../json.ts'

const GENERAL =
  'OpenID Connect requires providers to send it when max_age is requested; Microsoft Entra ID and Google send it only after a setting'

/** Returns a sentence without a full stop about the providers of ISSUER_CLIENTS with `signIn`. */
export function sendersOfAuthTime({ ISSUERS, ISSUER_CLIENTS }: NodeJS.ProcessEnv): string {
  const issuers = entriesIn(ISSUERS)
  const texts = entriesIn(ISSUER_CLIENTS).flatMap(({ issuer, signIn }) => {
    if (signIn === undefined) return []
    const entry = issuers.find((one) => one.issuer === issuer)
    return [authTimeText(String(entry?.preset), String(issuer))]
  })
  return texts.length === 0 ? GENERAL : texts.join('; ')
}

/** Returns the entries of `ISSUERS` or `ISSUER_CLIENTS`. Other checks report a text without entries. */
export function entriesIn(text: string | undefined): readonly Readonly<Record<string, unknown>>[] {
  const entries = jsonIn(text ?? '')
  return Array.isArray(entries) ? entries.filter((one) => typeof one === 'object' && one) : []
}

/** Reads the query of the sign-in. */
import { signInRefused } from '../refused.ts'
import { localesIn, returnPathIn, type SignInDemand } from '../return-path.ts'

const PROMPTS = ['login', 'select_account'] as const
const SECONDS = /^\d{1,9}$/
/** Visible ASCII without quotation mark and backslash, separated by single spaces. */
const ACR_VALUES = /^[\x21\x23-\x5b\x5d-\x7e]+(?: [\x21\x23-\x5b\x5d-\x7e]+)*$/
const MAX_ACR_CHARACTERS = 1_024

/** Returns a parameter. Throws `Denied` (`sign_in_refused`) if it occurs more than once. */
export function firstIn(query: URLSearchParams, name: string): string | undefined {
  const [value, ...others] = query.getAll(name)
  if (others.length > 0) throw signInRefused('query')
  return value
}

/** Returns the demand. A return path to another host is replaced. */
export function demandIn(query: URLSearchParams): SignInDemand {
  const prompt = firstIn(query, 'prompt')
  const maxAge = firstIn(query, 'max_age')
  const acr = firstIn(query, 'acr_values')
  const known = PROMPTS.find((one) => one === prompt)
  if (
    (prompt !== undefined && known === undefined) ||
    (maxAge !== undefined && !SECONDS.test(maxAge)) ||
    (acr !== undefined && (acr.length > MAX_ACR_CHARACTERS || !ACR_VALUES.test(acr)))
  )
    throw signInRefused('query')
  return {
    returnPath: returnPathIn(firstIn(query, 'return_to')),
    prompt: known,
    maxAgeSeconds: maxAge === undefined ? undefined : Number(maxAge),
    acr: acr?.split(' '),
    uiLocales: localesIn(firstIn(query, 'ui_locales')),
    returnsUnmet: firstIn(query, 'unmet') === 'return',
  }
}

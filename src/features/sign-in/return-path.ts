/** Paths of this host to which a browser returns after it has signed in. */
import { ambiguity, pathOf } from '../../http/path.ts'

/** The gateway's own pages. */
export const SIGN_IN_PATH = '/oauth/sign-in'
export const CALLBACK_PATH = '/oauth/callback'
/** The callback of one provider: see `callbackPathOf`. */
export const OWN_CALLBACK_PATH = `${CALLBACK_PATH}/:provider`
/** At the host of `PUBLIC_URL`: hands the login of the browser over to another host. */
export const HAND_OVER_PATH = '/oauth/hand-over'
/** At the other host: takes it over. */
export const HANDED_OVER_PATH = '/oauth/handed-over'
export const SIGN_OUT_PATH = '/oauth/sign-out'
export const SIGNED_OUT_PATH = '/oauth/signed-out'
export const BACK_CHANNEL_LOGOUT_PATH = '/oauth/backchannel-logout'
export const SESSIONS_PATH = '/oauth/sessions'
export const SESSION_PATH = `${SESSIONS_PATH}/:id`

/** A parameter that is appended to a return path: the login did not meet the demand. */
export const UNMET_MARK = 'login_unmet'

/** The value of the mark if the login did not meet the demand. */
export const IS_UNMET = '1'
const MAY_BE_UNMET = new RegExp(`^([^#]*)[?&]${UNMET_MARK}=0(?=#|$)`)

/** Returns the path with the mark in its query. */
export function markUnmet(path: string, value: '0' | typeof IS_UNMET): string {
  const { pathname, search, hash } = new URL(path, BASE)
  return `${pathname}${search}${search === '' ? '?' : '&'}${UNMET_MARK}=${value}${hash}`
}

/**
 * Reads the return path of a stored login. The mark in it says that the browser also returns if the demand is
 * not met: gateways of earlier versions refuse a record with a further member.
 */
export const storedReturn = (path: string) => ({
  returnPath: path.replace(MAY_BE_UNMET, '$1'),
  returnsUnmet: MAY_BE_UNMET.test(path),
})

/** Where a login begins, if the page that needed it cannot be shown again. */
export const HOME_PATH = '/'

/** Long enough for an authorization request. Longer ones are stored (RFC 9126). */
const MAX_RETURN_PATH_CHARACTERS = 4_096
/** A longer list is ignored. */
const MAX_UI_LOCALES_CHARACTERS = 512
const MAX_LOCALES = 20
const LOCALE = /^[a-z]{1,8}(?:-[a-z0-9]{1,8}){0,8}$/i
/** Visible ASCII. A browser sends other characters percent-encoded. */
const VISIBLE_ASCII = /^[\x21-\x7e]*$/
/** Of any origin: only the path of the result is used. */
const BASE = 'https://gateway.invalid'

/**
 * Returns the language tags among the first 20 words of `ui_locales` (OpenID Connect Core section 3.1.2.1). Returns undefined
 * if there is none, or if the text is longer than 512 characters. Does not throw: an unknown language is not an error.
 */
export function localesIn(text: string | undefined): string | undefined {
  if (text === undefined || text.length > MAX_UI_LOCALES_CHARACTERS) return undefined
  const tags = text.split(' ', MAX_LOCALES).filter((tag) => LOCALE.test(tag))
  return tags.length === 0 ? undefined : tags.join(' ')
}

/** What a page demands of a login. */
export interface SignInDemand {
  /** The path of a page of this host, with its query and fragment. */
  readonly returnPath: string
  /** Demands a new login, or the choice of an account (OpenID Connect Core section 3.1.2.1). */
  readonly prompt?: 'login' | 'select_account' | undefined
  /** The longest time since the login at the provider, in seconds. */
  readonly maxAgeSeconds?: number | undefined
  /** Accepted authentication context classes, the preferred one first. Default: any. */
  readonly acr?: readonly string[] | undefined
  /** The preferred languages of the pages, also at the provider, separated by spaces. Default: those of the browser. */
  readonly uiLocales?: string | undefined
  /**
   * Whether the browser also returns if its login does not meet the demand, with {@link UNMET_MARK} in its query.
   * Default: it gets a page that says so.
   */
  readonly returnsUnmet?: boolean | undefined
  /** The name of the user, if that is known. */
  readonly loginHint?: string | undefined
}

/**
 * Reports whether a text is the path, query and fragment of a page of this host, which every browser reads as
 * such: it begins with one slash, has no backslash, space or control character, and its path has one reading
 * (see `ambiguity`). Browsers do not send the fragment: only the app reads it. The gateway's own pages of the
 * login do not count, because a login that ends there has no effect or a wrong one.
 */
export function isReturnPath(text: string): boolean {
  if (text.length > MAX_RETURN_PATH_CHARACTERS || !VISIBLE_ASCII.test(text)) return false
  if (!text.startsWith('/') || text.includes('\\')) return false
  const url = URL.parse(text, BASE)
  if (url === null || url.origin !== BASE) return false
  if (url.pathname + url.search + url.hash !== text) return false
  const path = pathOf(BASE + text)
  return ambiguity(path) === undefined && !isOwnPath(path.toLowerCase())
}

const isOwnPath = (path: string) => OWN_PATHS.includes(path) || path.startsWith(`${CALLBACK_PATH}/`)

const OWN_PATHS: readonly string[] = [
  SIGN_IN_PATH,
  CALLBACK_PATH,
  SIGN_OUT_PATH,
  SIGNED_OUT_PATH,
  BACK_CHANNEL_LOGOUT_PATH,
  HANDED_OVER_PATH,
]

/** A policy with the sign-in cannot route these paths. */
export const RESERVED_PATHS: readonly string[] = [
  ...OWN_PATHS,
  OWN_CALLBACK_PATH,
  HAND_OVER_PATH,
  SESSIONS_PATH,
  SESSION_PATH,
]

/** Returns the text if it is a return path, and {@link HOME_PATH} otherwise. */
export const returnPathIn = (text: string | undefined): string =>
  text !== undefined && isReturnPath(text) ? text : HOME_PATH

/** Returns the path of the sign-in with a demand in its query. */
export const signInPath = (demand: SignInDemand): string => `${SIGN_IN_PATH}?${signInQuery(demand)}`

/** Returns the parameters of a demand. */
export function signInQuery({
  returnPath,
  prompt,
  maxAgeSeconds,
  acr,
  uiLocales,
  returnsUnmet,
}: SignInDemand): URLSearchParams {
  const query = new URLSearchParams({ return_to: returnPathIn(returnPath) })
  if (prompt !== undefined) query.set('prompt', prompt)
  if (maxAgeSeconds !== undefined) query.set('max_age', String(maxAgeSeconds))
  if (acr !== undefined && acr.length > 0) query.set('acr_values', acr.join(' '))
  if (uiLocales !== undefined) query.set('ui_locales', uiLocales)
  if (returnsUnmet) query.set('unmet', 'return')
  return query
}

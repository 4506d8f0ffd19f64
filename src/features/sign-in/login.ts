/** Logins in progress: from the first redirect to the provider until its answer. */
import { base64url } from 'jose'
import type { Received } from '../../access/tokens/token-cookie.ts'
import { type RandomBytes, randomBytes } from '../../crypto/random.ts'
import { hmacSha256, sha256 } from '../../crypto/sha256.ts'
import { Denied, ignoreOutage, Unavailable } from '../../errors.ts'
import type { Provider } from './provider.ts'
import { signInRefused } from './refused.ts'
import {
  CALLBACK_PATH,
  markUnmet,
  returnPathIn,
  type SignInDemand,
  storedReturn,
} from './return-path.ts'
import type { SessionStore } from './session-store.ts'

/**
 * The beginning of the names of cookies that bind a login to the browser which began it. Logins of a
 * browser share a cookie. Those that begin at the same time, in several tabs, have one each: with one
 * name, the last would replace the others.
 */
export const LOGIN_COOKIE_PREFIX = '__Host-portcullis-login-'
/** A user may have to enter a password and a second factor. */
export const LOGIN_SECONDS = 900

const SECRET_BYTES = 32
const NAME_BYTES = 6
/** base64url of 32 bytes, canonical. */
const SECRET = /^[\w-]{42}[AEIMQUYcgkosw048]$/
const COOKIE = /^__Host-portcullis-login-[\w-]{8}$/
/** More than a browser starts at once, even with many restored tabs. */
const MAX_COOKIES = 50

/** The cookie of a browser: its secret proves that a login was begun there. */
export interface BrowserCookie {
  readonly name: string
  readonly secret: string
}

export interface StartedLogin {
  /** Where the browser goes. */
  readonly url: URL
  readonly cookie: BrowserCookie
}

/** Creates the cookie of a browser that has none. */
export const newBrowserCookie = (random: RandomBytes): BrowserCookie => ({
  name: LOGIN_COOKIE_PREFIX + base64url.encode(random(NAME_BYTES)),
  secret: base64url.encode(random(SECRET_BYTES)),
})

/** Returns the cookies of a request that bind logins. Ignores those of another form. */
export function browserCookiesIn(received: Received): readonly BrowserCookie[] {
  return (received.get('cookie') ?? '')
    .split(';')
    .map((pair) => {
      const at = pair.indexOf('=')
      return { name: pair.slice(0, at).trim(), secret: pair.slice(at + 1).trim() }
    })
    .filter(({ name, secret }) => COOKIE.test(name) && SECRET.test(secret))
    .slice(0, MAX_COOKIES)
}

/** A login that the provider or a check has refused, after the gateway knew which login it is. */
export interface FailedLogin {
  /** `Denied` (`sign_in_refused`) with the check that failed, or `Unavailable`. */
  readonly failure: Denied | Unavailable
  readonly provider: Provider
  readonly returnPath: string
  /** As in the demand. */
  readonly returnsUnmet?: boolean
}

export type Logins = ReturnType<typeof createLogins>

export interface LoginsOptions {
  readonly providers: readonly Provider[]
  readonly store: SessionStore
  readonly random?: RandomBytes
}

/**
 * Creates the logins. The store has the login under the hash of its `state`, for one use. `nonce` and
 * the PKCE verifier are derived from `state` and the browser's cookie, so no other browser can
 * complete the login, and the store contains nothing that could.
 */
export function createLogins({ providers, store, random = randomBytes }: LoginsOptions) {
  async function deriveSecrets(browser: string, state: string) {
    const derive = await hmacSha256(new TextEncoder().encode(browser))
    return {
      nonce: base64url.encode(await derive(`nonce ${state}`)),
      verifier: base64url.encode(await derive(`verifier ${state}`)),
    }
  }

  return {
    /** Throws `Unavailable` if the provider or the store does not respond. */
    async start(
      provider: Provider,
      { returnPath, returnsUnmet, ...asked }: SignInDemand,
      received: Received,
    ): Promise<StartedLogin> {
      const { prompt, maxAgeSeconds, acr, loginHint, uiLocales } = asked
      const [cookie = newBrowserCookie(random)] = browserCookiesIn(received)
      const state = base64url.encode(random(SECRET_BYTES))
      const demand = { prompt, maxAgeSeconds, acr, loginHint, uiLocales }
      const callbackPath = await provider.callbackPath()
      const url = await provider.authorizationUrl({
        ...demand,
        callbackPath,
        ...(await deriveSecrets(cookie.secret, state)),
        state,
      })
      const login = {
        issuer: provider.issuer,
        returnPath: returnsUnmet
          ? markUnmet(returnPathIn(returnPath), '0')
          : returnPathIn(returnPath),
        browserHash: await sha256(cookie.secret),
        maxAgeSeconds,
        acr: acr === undefined ? undefined : [...acr],
        callbackPath: callbackPath === CALLBACK_PATH ? undefined : callbackPath,
      }
      await store.beginLogin(await sha256(state), login, LOGIN_SECONDS)
      return { url, cookie }
    },

    /**
     * Completes the login of an authorization response. Throws `Denied` (`sign_in_refused`) with the
     * check that failed if the response belongs to no login of this browser, and `Unavailable`. `path` is
     * where the response has arrived: only the callback of the login's provider is accepted.
     */
    async complete(response: URLSearchParams, received: Received, path: string) {
      const cookies = browserCookiesIn(received)
      const [state, ...others] = response.getAll('state')
      if (state === undefined || others.length > 0 || !SECRET.test(state))
        throw signInRefused('state')
      // Before the login is taken: another browser must not be able to end it.
      if (cookies.length === 0) throw signInRefused('browser')
      const stateHash = await sha256(state)
      const login = await store.takeLogin(stateHash)
      if (login === undefined) throw signInRefused('state_unknown')
      const hashes = await Promise.all(cookies.map(({ secret }) => sha256(secret)))
      const cookie = cookies[hashes.indexOf(login.browserHash)]
      if (cookie === undefined) throw signInRefused('browser')
      const provider = providers.find(({ issuer }) => issuer === login.issuer)
      if (provider === undefined) throw signInRefused('provider_unknown')
      const { maxAgeSeconds, acr, callbackPath = CALLBACK_PATH } = login
      const { returnPath, returnsUnmet } = storedReturn(login.returnPath)
      const demand = { maxAgeSeconds, acr, callbackPath }
      const expected = { ...(await deriveSecrets(cookie.secret, state)), ...demand, state }
      // A convenience: without the record, a second load shows a page.
      const keepUsed = () =>
        store.beginLogin(stateHash, { ...login, used: true }, LOGIN_SECONDS).catch(ignoreOutage)
      if (login.used) {
        await keepUsed()
        return { failure: signInRefused('state_used'), provider, returnPath }
      }
      try {
        if (path !== callbackPath) throw signInRefused('callback')
        const completed = await provider.complete(response, expected)
        await keepUsed()
        return { login: completed, provider, returnPath }
      } catch (failure) {
        if (failure instanceof Denied || failure instanceof Unavailable)
          return { failure, provider, returnPath, returnsUnmet }
        throw failure
      }
    },
  }
}

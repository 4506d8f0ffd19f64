/**
 * Hands a login over from the host of `PUBLIC_URL` to another host of the policy: the asking host sends the
 * browser there, and the browser comes back with a code. Hosts share no cookie.
 */
import { base64url } from 'jose'
import type { Principal } from '../../access/principal.ts'
import type { Received } from '../../access/tokens/token-cookie.ts'
import { type RandomBytes, randomBytes } from '../../crypto/random.ts'
import { hmacSha256, sha256 } from '../../crypto/sha256.ts'
import type { Hosts } from './hosts.ts'
import { type BrowserCookie, browserCookiesIn, newBrowserCookie } from './login.ts'
import { signInRefused } from './refused.ts'
import {
  HAND_OVER_PATH,
  HANDED_OVER_PATH,
  HOME_PATH,
  isReturnPath,
  returnPathIn,
  type SignInDemand,
  signInQuery,
} from './return-path.ts'
import type { HandOver, SessionStore } from './session-store.ts'

/** A redirect needs no longer. */
const HAND_OVER_SECONDS = 60

const BYTES = 32
/** base64url of 32 bytes, canonical. */
const CODE = /^[\w-]{42}[AEIMQUYcgkosw048]$/
/** A nonce, and its MAC with the secret of the browser. */
const STATE = /^([\w-]{43})\.([\w-]{43})$/

/** A host that asks for a login of a user. */
export interface Asking extends SignInDemand {
  readonly host: string
  /** Binds the code to the browser. Only the host and its browser can create it. */
  readonly state: string
}

export type HandOvers = ReturnType<typeof createHandOvers>

export interface HandOversOptions {
  readonly hosts: Hosts
  readonly publicUrl: string
  readonly store: Pick<SessionStore, 'keepHandOver' | 'takeHandOver'>
  readonly random?: RandomBytes
}

export function createHandOvers({
  hosts,
  publicUrl,
  store,
  random = randomBytes,
}: HandOversOptions) {
  async function stateFor(secret: string, nonce: string, host: string): Promise<string> {
    const derive = await hmacSha256(new TextEncoder().encode(secret))
    return `${nonce}.${base64url.encode(await derive(`hand-over ${host} ${nonce}`))}`
  }

  function pathOf({ host, state, ...demand }: Asking): string {
    const path = (returnPath: string) =>
      `${HAND_OVER_PATH}?${new URLSearchParams({ host, state })}&${signInQuery({ ...demand, returnPath })}`
    // A path that is too long to come back from the login would lose the host, too.
    const wanted = path(demand.returnPath)
    return isReturnPath(wanted) ? wanted : path(HOME_PATH)
  }

  return {
    /** At the asking host: returns where the browser goes, and the cookie that binds it. */
    async ask(
      host: string,
      demand: SignInDemand,
      received: Received,
    ): Promise<{ readonly url: string; readonly cookie: BrowserCookie }> {
      const [cookie = newBrowserCookie(random)] = browserCookiesIn(received)
      const state = await stateFor(cookie.secret, base64url.encode(random(BYTES)), host)
      return { url: publicUrl + pathOf({ ...demand, host, state }), cookie }
    },

    /** At the host of `PUBLIC_URL`: returns the path and query that hand over after a login. */
    pathOf,

    /** At the host of `PUBLIC_URL`: returns where the browser goes, with a code for the login of a user. */
    async issue(
      { host, state, returnPath }: Asking,
      { tokenId, tokenIssuer, signIn }: Principal,
    ): Promise<string> {
      const origin = hosts.originOf(host)
      if (origin === undefined || !STATE.test(state)) throw signInRefused('hand_over')
      if (tokenId === undefined || signIn === undefined) throw signInRefused('no_session')
      const code = base64url.encode(random(BYTES))
      const handOver: HandOver = {
        host,
        state,
        sessionId: tokenId,
        issuer: tokenIssuer,
        providerSubject: signIn.providerSubject,
        returnPath: returnPathIn(returnPath),
      }
      await store.keepHandOver(await sha256(code), handOver, HAND_OVER_SECONDS)
      return `${origin}${HANDED_OVER_PATH}?${new URLSearchParams({ code })}`
    },

    /**
     * At the asking host: returns what a code stands for, and ends the code in any case. Throws `Denied`
     * (`sign_in_refused`) for a code that is not valid, or for another host or browser, and `Unavailable`.
     */
    async redeem(code: string | undefined, host: string, received: Received): Promise<HandOver> {
      if (code === undefined || !CODE.test(code)) throw signInRefused('hand_over_code')
      // Taken before anything is compared: a code that has been seen elsewhere is of no more use.
      const handOver = await store.takeHandOver(await sha256(code))
      if (handOver === undefined) throw signInRefused('hand_over_code')
      if (handOver.host !== host) throw signInRefused('hand_over_host')
      const [nonce = ''] = handOver.state.split('.')
      for (const { secret } of browserCookiesIn(received))
        if ((await stateFor(secret, nonce, host)) === handOver.state) return handOver
      throw signInRefused('browser')
    },
  }
}

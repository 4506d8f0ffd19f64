/**
 * The user of a browser, for pages of the gateway that need one, such as an authorization endpoint.
 */
import type { Principal } from '../../access/principal.ts'
import { unmetByCaller } from '../../access/tokens/login.ts'
import { type SignInDemand, signInPath } from './return-path.ts'
import { readSession } from './session.ts'
import type { SessionReader } from './session-reader.ts'

/** A user with a valid session, which is neither revoked nor banned. */
export interface SignedInUser {
  /** `issuer` is the provider. Roles and tenant are those of the ID token. */
  readonly principal: Principal
  readonly issuer: string
  readonly subject: string
  /** The time of the login at the provider, in seconds since the epoch. Undefined: not known. */
  readonly authenticatedAtSeconds: number | undefined
  /** The authentication context class of the login. Undefined: the provider names none. */
  readonly acr: string | undefined
  /** Identifies the session. It is the SHA-256 of the session's id, and no secret. */
  readonly sessionIdHash: string
}

/** There is no session, or its login does not meet the demand. */
export interface SignInRequired {
  /** The path of the gateway's sign-in with the demand in its query. Redirect the browser to it. */
  readonly signInPath: string
}

export interface SignedInUserQuery extends SignInDemand {
  /** The request to the page: its `Cookie` header is read. */
  readonly request: Request
  /** The normalized address of the client: `clientAddressOf(c)`. */
  readonly address: string
}

export type SignedInUsers = ReturnType<typeof createSignedInUsers>

export interface SignedInUsersOptions {
  readonly readUser: SessionReader
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

export function createSignedInUsers({ readUser, now }: SignedInUsersOptions) {
  return {
    /**
     * Returns the user whose session the request has, or where to send the browser. After the login,
     * the browser comes back to `returnPath`. With `prompt: 'login'` or `'select_account'`, the answer
     * is always {@link SignInRequired}: omit `prompt` in `returnPath`, otherwise the browser returns
     * to the login for ever. A page that must not show a login (`prompt=none`) refuses instead of
     * redirecting.
     *
     * Throws `Denied` for a banned address or subject and for an ambiguous `Cookie` header, and
     * `Unavailable` if Redis does not respond. Makes one call to Redis. Does NOT protect a form
     * against requests of other pages: check `refuseCrossOrigin` before anything is changed.
     */
    async find({
      request,
      address,
      ...demand
    }: SignedInUserQuery): Promise<SignedInUser | SignInRequired> {
      const text = readSession(new Map(request.headers))
      const principal = text === undefined ? undefined : await readUser(text, address, request.url)
      const { signIn, tokenIdHash } = principal ?? {}
      const isForced = demand.prompt !== undefined
      if (
        principal === undefined ||
        signIn === undefined ||
        tokenIdHash === undefined ||
        isForced ||
        unmetByCaller(principal, demand, now()) !== undefined
      )
        return { signInPath: signInPath(demand) }
      return {
        principal,
        issuer: principal.issuer,
        subject: principal.subject,
        authenticatedAtSeconds: signIn.authTimeSeconds,
        acr: signIn.acr,
        sessionIdHash: tokenIdHash,
      }
    },
  }
}

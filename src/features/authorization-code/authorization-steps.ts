/** The order of the checks of an authorization request, independent of HTTP. */
import { oauthRefused } from '../../access/tokens/rejection.ts'
import { AUTHORIZE_PATH } from '../authorization-server/metadata.ts'
import { localesIn, type SignInDemand } from '../sign-in/return-path.ts'
import type { SignedInUser, SignInRequired } from '../sign-in/signed-in-user.ts'
import {
  type AuthorizationEndpoint,
  LOGIN_SECONDS,
  type ReadRequest,
  type RedirectTarget,
  type RequestUser,
} from './authorization-endpoint.ts'
import { type AuthorizationRequest, parseAuthorizationRequest } from './authorization-request.ts'
import type { ClientOrigin, FoundClient } from './registration/directory.ts'
import type { Authorization } from './waiting-request.ts'

/** Where errors of a request go. */
export interface ErrorTarget extends RedirectTarget {
  /** Whether the user, or the operator, has decided about the redirect URI. */
  readonly isTrusted: boolean
  readonly clientId: string
  /** Undefined: no user is signed in, as far as the request was read. */
  readonly user?: RequestUser
}

/** The browser that sends a request. */
export interface Browser {
  readonly address: string
  /** The path and the query of the request, to which a login returns. */
  readonly returnPath: string
  findUser(demand: SignInDemand): Promise<SignedInUser | SignInRequired>
  /** Called with `ui_locales` of the request. */
  preferLocales(locales: string | undefined): void
  /** Called when the redirect URI is verified, and again when more is known. */
  sendErrorsTo(target: ErrorTarget): void
}

/** What the user decides about, on a page. */
export interface ConsentRequest {
  readonly authorization: Authorization
  readonly origin: ClientOrigin
  /** For the form of the page. */
  readonly handle: string
  readonly user: RequestUser
}

type Redirect = { readonly redirect: string }

/** The request must fit into the address of the page to which the login returns. */
const MAX_QUERY_CHARS = 3_600
/** By how much the clocks of providers differ. */
const CLOCK_TOLERANCE_SECONDS = 60

/** Creates the steps. `now` returns milliseconds since the epoch. Each throws `Denied` and `Unavailable`. */
export function createAuthorizationSteps(endpoint: AuthorizationEndpoint, now: () => number) {
  async function findClient(read: ReadRequest, browser: Browser): Promise<FoundClient | Redirect> {
    let search = await endpoint.search(read.clientId)
    if ('missing' in search && search.missing === 'unread') {
      // Whatever the client is: no login and no call for a query that will be refused.
      if (read.mistake !== undefined) throw read.mistake
      // Only for a signed-in user does the gateway call the host that a client names.
      if (promptsIn(read).includes('none'))
        throw oauthRefused('login_required', 'client_document_unread')
      const { returnPath } = browser
      const user = await browser.findUser({ returnPath, uiLocales: localesOf(read) })
      if ('signInPath' in user) return { redirect: user.signInPath }
      search = await endpoint.searchFor(user, read.clientId)
    }
    if ('missing' in search) throw oauthRefused('invalid_request', `client_${search.missing}`)
    return search
  }

  /** Returns the user whose login meets the request, or the redirect to the sign-in. */
  async function requireLogin(
    read: ReadRequest,
    { prompts, maxAgeSeconds, acr }: AuthorizationRequest,
    { address, returnPath, findUser }: Browser,
    isTrusted: boolean,
  ): Promise<SignedInUser | Redirect> {
    const { loginAfterSeconds } = read
    const prompt = (['login', 'select_account'] as const).find((name) => prompts.has(name))
    if (prompts.has('none') && prompt !== undefined)
      throw oauthRefused('invalid_request', 'authorize_prompt')
    if (read.isUnmet)
      throw acr === undefined && maxAgeSeconds === undefined
        ? oauthRefused('login_required', 'authorize_login_unmet')
        : oauthRefused('unmet_authentication_requirements', 'authorize_login_unmet')
    // With `max_age`, the provider must say when the user logged in. Otherwise, nothing shows it.
    const ageSeconds = prompt === 'login' ? (maxAgeSeconds ?? LOGIN_SECONDS) : maxAgeSeconds
    const isDemanding = prompt !== undefined || ageSeconds !== undefined
    // Otherwise the page of the sign-in says what was not met: no error goes to the client.
    const returnsUnmet = isTrusted && (isDemanding || acr !== undefined)
    const demand = {
      uiLocales: localesOf(read),
      returnsUnmet,
      ...(acr !== undefined && { acr }),
      ...(loginAfterSeconds === undefined && {
        ...(prompt !== undefined && { prompt }),
        ...(ageSeconds !== undefined && { maxAgeSeconds: ageSeconds }),
      }),
    }
    let user = await findUser({ returnPath, ...demand })
    if ('signInPath' in user) {
      if (prompts.has('none')) throw oauthRefused('login_required', 'authorize_login')
      if ((isDemanding || returnsUnmet) && loginAfterSeconds === undefined) {
        const atSeconds = Math.floor(now() / 1000)
        const query = await endpoint.awaitLogin(read, { address, atSeconds })
        user = await findUser({ returnPath: `${AUTHORIZE_PATH}?${query}`, ...demand })
      }
      if ('signInPath' in user) return { redirect: user.signInPath }
    }
    if (loginAfterSeconds === undefined) return user
    // The provider did not let the user log in again, or does not say so. Another redirect would
    // repeat for ever. The choice of an account needs no new login, but a new session.
    const demandedSeconds = loginAfterSeconds - CLOCK_TOLERANCE_SECONDS
    const oldestSeconds = demandedSeconds - (prompt === 'login' ? 0 : (maxAgeSeconds ?? 0))
    const { authenticatedAtSeconds = Number.NEGATIVE_INFINITY, principal } = user
    const isOld = ageSeconds !== undefined && authenticatedAtSeconds < oldestSeconds
    if (isOld && maxAgeSeconds !== undefined)
      throw oauthRefused('unmet_authentication_requirements', 'authorize_login_age')
    if (isOld || (prompt === 'select_account' && principal.issuedAtSeconds < demandedSeconds))
      throw oauthRefused('login_required', 'authorize_login_age')
    return user
  }

  return {
    /**
     * Decides a request: the request, its client, the redirect URI, the parameters, the user, what the
     * client may get, and whether the user has allowed it before. Returns where the browser goes, or
     * what the user must decide about.
     */
    async authorize(query: string, browser: Browser): Promise<Redirect | ConsentRequest> {
      if (query.length > MAX_QUERY_CHARS) throw oauthRefused('invalid_request', 'authorize_length')
      const read = await endpoint.read(query)
      browser.preferLocales(localesOf(read))
      const client = await findClient(read, browser)
      if ('redirect' in client) return client
      const target = endpoint.targetOf(client, read.form)
      const isTrusted = client.origin === 'operator'
      const errorTarget: ErrorTarget = { ...target, isTrusted, clientId: client.client.id }
      browser.sendErrorsTo(errorTarget)
      if (read.mistake !== undefined) throw read.mistake
      endpoint.requirePushed(client, read)
      const request = parseAuthorizationRequest(read.form)
      const user = await requireLogin(read, request, browser, isTrusted)
      if ('redirect' in user) return user
      browser.sendErrorsTo({ ...errorTarget, user })
      const proposed = endpoint.propose(client, user, request, { ...target, pushed: read.pushed })
      if (!request.prompts.has('consent') && (await endpoint.isAllowed(user, proposed))) {
        const code = await endpoint.issue(user, proposed, { isRepeated: true })
        return { redirect: endpoint.responseUrl(target, { code }) }
      }
      if (request.prompts.has('none')) throw oauthRefused('consent_required', 'authorize_consent')
      const handle = await endpoint.hold(proposed)
      return { authorization: proposed, origin: client.origin, handle, user }
    },

    /** Returns where the browser goes after the decision of the user, and the client that is allowed. */
    async decide(
      { handle, isAllowed }: { readonly handle: string | undefined; readonly isAllowed: boolean },
      { findUser, returnPath, sendErrorsTo }: Omit<Browser, 'address' | 'preferLocales'>,
    ): Promise<Redirect & { readonly client: string }> {
      // The user has just seen the page. After a session of minutes, the app must start again.
      const user = await findUser({ returnPath })
      if ('signInPath' in user) throw oauthRefused('login_required', 'consent_login')
      const authorization = await endpoint.taken(handle, user)
      const { client, redirectUri, state } = authorization
      const target = { redirectUri, state }
      sendErrorsTo({ ...target, isTrusted: true, clientId: client })
      if (!isAllowed) {
        await endpoint.discard(authorization)
        throw oauthRefused('access_denied', 'consent_denied')
      }
      const search = await endpoint.search(client)
      // A document that left the cache meanwhile was valid when the user saw it.
      if ('missing' in search && search.missing !== 'unread')
        throw oauthRefused('unauthorized_client', `client_${search.missing}`)
      const code = await endpoint.issue(user, authorization, { isRepeated: false })
      return { redirect: endpoint.responseUrl(target, { code }), client }
    },
  }
}

const localesOf = ({ form }: ReadRequest) => localesIn(form.one('ui_locales'))

const promptsIn = ({ form }: ReadRequest): readonly string[] => form.one('prompt')?.split(' ') ?? []

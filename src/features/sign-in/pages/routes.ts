/** The sign-in over HTTP: the login, its callback, and the sign-out. */
import type { Context, Hono, MiddlewareHandler } from 'hono'
import type { Principal } from '../../../access/principal.ts'
import { MAX_TOKEN_BYTES } from '../../../access/tokens/jws.ts'
import { unmetByCaller } from '../../../access/tokens/login.ts'
import { refuseCrossOrigin } from '../../../access/tokens/token-cookie.ts'
import { Denied } from '../../../errors.ts'
import { NO_STORE } from '../../../http/response-headers.ts'
import { createApp } from '../../../http/router.ts'
import {
  bodyOf,
  clientAddressOf,
  type GatewayVariables,
  waitUntilOf,
} from '../../../middleware/context.ts'
import { stage } from '../../../middleware/in-order.ts'
import { limitBody } from '../../../middleware/limit-body.ts'
import { receivedHeaders } from '../../../middleware/request-headers.ts'
import { readWhole } from '../../../middleware/validate.ts'
import type { PolicyLimit } from '../../../policy/policy.ts'
import { completeRoute } from '../../../policy/route.ts'
import { pagesOf } from '../browser-session.ts'
import type { HandOvers } from '../hand-over.ts'
import type { Hosts } from '../hosts.ts'
import { type BrowserCookie, LOGIN_SECONDS, type Logins } from '../login.ts'
import { loginHintIn } from '../login-hint.ts'
import { issuerOfLogout } from '../logout-token.ts'
import { isNavigation } from '../navigation.ts'
import type { Provider } from '../provider.ts'
import type { ProviderSessions } from '../provider-sessions.ts'
import { signInRefused } from '../refused.ts'
import { preferLocales } from '../rendering/language.ts'
import type { RenderPage } from '../rendering/page.ts'
import {
  BACK_CHANNEL_LOGOUT_PATH,
  CALLBACK_PATH,
  HAND_OVER_PATH,
  HANDED_OVER_PATH,
  HOME_PATH,
  IS_UNMET,
  markUnmet,
  OWN_CALLBACK_PATH,
  SESSION_PATH,
  SESSIONS_PATH,
  SIGN_IN_PATH,
  SIGN_OUT_PATH,
  SIGNED_OUT_PATH,
  type SignInDemand,
  signInPath,
} from '../return-path.ts'
import { readSession, removeCookie, SESSION_COOKIE, setCookie } from '../session.ts'
import type { SessionReader } from '../session-reader.ts'
import type { SessionOwner } from '../session-store.ts'
import { ownerOf, type Sessions } from '../sessions.ts'
import { checkOf, isUnmet, isUsed } from './failed-check.ts'
import { chooserPage, sessionsPage, signedOutPage, signOutPage } from './pages.ts'
import { placeOf } from './place.ts'
import { demandIn, firstIn } from './query.ts'
import { errorPage, type RefusedLogin } from './refusal-page.ts'
import { sessionsView } from './sessions-view.ts'

export interface SignInRoutesOptions {
  readonly providers: readonly Provider[]
  readonly logins: Logins
  readonly sessions: Sessions
  readonly providerSessions: ProviderSessions
  readonly readUser: SessionReader
  readonly renderPage: RenderPage
  /** Admits requests of browsers without a credential, by their address. */
  readonly admitBrowser: MiddlewareHandler
  /** Admits requests of providers: one address may send many. */
  readonly admitProvider: MiddlewareHandler
  readonly limits: readonly PolicyLimit[]
  readonly hosts: Hosts
  /** The gateway's public URL. */
  readonly publicUrl: string
  readonly handOvers: HandOvers
  /** Returns what a trusted proxy reports about the place of the client. Default: the platform reports it, or nothing. */
  readonly reportedPlaceOf: ((c: Context) => object | undefined) | undefined
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

type Environment = { Variables: GatewayVariables }
type SignInContext = Context<Environment>

/** The login that was refused, for its page. */
const REFUSED = 'portcullis.refusedLogin' as never

const MAX_USER_AGENT_CHARACTERS = 200
/** The longest logout token, and reserve. */
const MAX_BODY_BYTES = MAX_TOKEN_BYTES + 1_024
const FORM_TIMEOUT_MS = 3_000
/** Pages are requested with `text/html` in the first place. */
const JSON_TYPE = /^\s*application\/json\b/i
const FORM_TYPE = /^application\/x-www-form-urlencoded[ \t]*(?:;|$)/i

/** Creates the pages. They must come after `audit` and `clientAddress`. */
export function signInRoutes({
  providers,
  logins,
  sessions,
  providerSessions,
  readUser,
  renderPage,
  admitBrowser,
  admitProvider,
  limits,
  hosts,
  publicUrl,
  handOvers,
  reportedPlaceOf = ({ req }) => (req.raw as { readonly cf?: object }).cf,
  now,
}: SignInRoutesOptions): Hono<Environment> {
  const app = createApp<Environment>()
  app.onError((error, c) => {
    // The gateway answers with a problem document.
    if (isForPrograms(c)) throw error
    const login = c.get(REFUSED) as RefusedLogin | undefined
    const id = c.get('portcullis.requestId')
    return renderPage(c, (language) => errorPage(language, error, login, id))
  })

  function redirect(location: string, cookies: readonly string[]): Response {
    const headers = new Headers({ ...NO_STORE, Location: location })
    for (const cookie of cookies) headers.append('Set-Cookie', cookie)
    return new Response(null, { status: 303, headers })
  }

  /** Returns the user of the request's session, also for the audit event. */
  async function findUser(c: SignInContext) {
    const text = readSession(receivedHeaders(c))
    const user =
      text === undefined ? undefined : await readUser(text, clientAddressOf(c), c.req.url)
    if (user !== undefined) c.set('portcullis.principal', user)
    return user
  }

  async function endSessionOf(user: Principal): Promise<void> {
    const owner = ownerOf(user)
    if (owner !== undefined && user.tokenId !== undefined) await sessions.end(user.tokenId, owner)
  }

  function page(
    path: string,
    handlers: Readonly<
      Partial<Record<'GET' | 'POST' | 'DELETE', (c: SignInContext) => Promise<Response>>>
    >,
  ): void {
    const methods = Object.entries(handlers)
    const route = completeRoute({ method: 'GET', path, limits })
    app.all(path, (c, next) => {
      c.set('portcullis.route', route)
      c.set('portcullis.principal', null)
      return next()
    })
    for (const [method, handler] of methods)
      app.on(
        method,
        [path],
        stage('limitBody', limitBody({ maxBytes: MAX_BODY_BYTES })),
        stage('admit', path === BACK_CHANNEL_LOGOUT_PATH ? admitProvider : admitBrowser),
        stage('signIn', handler),
      )
    app.all(path, async function refuseMethod() {
      const allow = methods.flatMap(([method]) => (method === 'GET' ? ['GET', 'HEAD'] : [method]))
      throw new Denied({ code: 'method_not_allowed', allow })
    })
  }

  /** Returns the name with which a user has signed in before. Undefined: it is not known. */
  async function findHint(user: Principal | undefined, provider: Provider) {
    if (user === undefined) return undefined
    const idToken = await providerSessions.idTokenOf(user, provider)
    return idToken === undefined ? undefined : loginHintIn(idToken)
  }

  page(SIGN_IN_PATH, {
    async GET(c) {
      const query = new URL(c.req.url).searchParams
      const demand = demandIn(query)
      preferLocales(c, demand.uiLocales)
      const host = hosts.otherOf(c.req.url)
      if (host !== undefined) {
        const { url, cookie } = await handOvers.ask(host, demand, receivedHeaders(c))
        return redirect(url, [bindBrowser(cookie)])
      }
      const issuer = firstIn(query, 'iss')
      const [only, ...others] = providers
      const user = isStepUp(demand) ? await findUser(c) : undefined
      // A user who is signed in has chosen before.
      const chosen = issuer ?? user?.tokenIssuer
      const provider =
        chosen === undefined && others.length === 0
          ? only
          : providers.find((one) => one.issuer === chosen)
      if (provider === undefined) {
        if (issuer !== undefined) throw signInRefused('provider_unknown')
        return renderPage(c, (language) => chooserPage(language, providers, signInPath(demand)))
      }
      const loginHint =
        user?.tokenIssuer === provider.issuer ? await findHint(user, provider) : undefined
      const asked = { ...demand, loginHint }
      const { url, cookie } = await logins.start(provider, asked, receivedHeaders(c))
      return redirect(url.href, [bindBrowser(cookie)])
    },
  })

  page(HAND_OVER_PATH, {
    async GET(c) {
      const query = new URL(c.req.url).searchParams
      const { prompt, returnsUnmet: _, ...demand } = demandIn(query)
      const host = firstIn(query, 'host') ?? ''
      const asking = { ...demand, host, state: firstIn(query, 'state') ?? '' }
      const isHere = hosts.otherOf(c.req.url) === undefined
      if (!isHere || hosts.originOf(host) === undefined) throw signInRefused('hand_over_host')
      if (!isNavigation(c.req.method, receivedHeaders(c))) throw signInRefused('hand_over')
      const user = await findUser(c)
      if (
        user === undefined ||
        prompt !== undefined ||
        unmetByCaller(user, demand, now()) !== undefined
      )
        return redirect(signInPath({ ...demand, prompt, returnPath: handOvers.pathOf(asking) }), [])
      return redirect(await handOvers.issue(asking, user), [])
    },
  })

  page(HANDED_OVER_PATH, {
    async GET(c) {
      const code = firstIn(new URL(c.req.url).searchParams, 'code')
      const host = hosts.otherOf(c.req.url)
      if (host === undefined) throw signInRefused('hand_over_host')
      const previous = await findUser(c)
      const handOver = await handOvers
        .redeem(code, host, receivedHeaders(c))
        .catch((error: unknown) => {
          // Such as with the back button: the host has taken over the login before.
          if (previous === undefined || checkOf(error) !== 'hand_over_code') throw error
        })
      if (handOver === undefined) return redirect(HOME_PATH, [])
      const opened = await sessions.openAt(host, handOver.sessionId)
      if (opened === undefined) throw signInRefused('no_session')
      c.set('portcullis.principal', opened.user)
      if (previous !== undefined && previous.tokenId !== handOver.sessionId)
        await endSessionOf(previous)
      return redirect(handOver.returnPath, [setCookie(SESSION_COOKIE, opened.reference)])
    },
  })

  for (const path of [CALLBACK_PATH, OWN_CALLBACK_PATH]) page(path, { GET: completeLogin })

  async function completeLogin(c: SignInContext) {
    const { searchParams: response, pathname } = new URL(c.req.url)
    const completed = await logins
      .complete(response, receivedHeaders(c), pathname)
      .catch((error: unknown) => ofUnknownLogin(error))
    if ('failure' in completed) {
      const { failure, provider, returnPath = HOME_PATH } = completed
      // Such as with the back button: the login was completed before.
      if (isUsed(failure) && (await findUser(c)) !== undefined) return redirect(returnPath, [])
      if ('returnsUnmet' in completed && completed.returnsUnmet && isUnmet(failure))
        return redirect(markUnmet(returnPath, IS_UNMET), [])
      c.set(REFUSED, { returnPath, provider: provider?.name } satisfies RefusedLogin as never)
      throw failure
    }
    const { login, provider, returnPath } = completed
    // The browser gets a new session in any case, so that no one else can have chosen it.
    const previous = await findUser(c)
    const userAgent = c.req.header('User-Agent')?.slice(0, MAX_USER_AGENT_CHARACTERS)
    const reference = await sessions.open(login, provider, userAgent, placeOf(reportedPlaceOf(c)))
    c.set('portcullis.principal', login.principal)
    if (previous !== undefined) await endSessionOf(previous)
    return redirect(returnPath, [setCookie(SESSION_COOKIE, reference)])
  }

  /** Returns where the browser signs out at the provider of its session, if the provider offers it. */
  async function signOutUrl(user: Principal | undefined): Promise<URL | undefined> {
    const provider = providers.find(({ issuer }) => issuer === user?.tokenIssuer)
    if (user === undefined || provider === undefined) return undefined
    return provider.signOutUrl(await providerSessions.idTokenOf(user, provider))
  }

  page(SIGN_OUT_PATH, {
    async GET(c) {
      const url = await signOutUrl(await findUser(c))
      return renderPage(c, (language) =>
        signOutPage(language, url === undefined ? [] : [url.origin]),
      )
    },
    async POST(c) {
      refuseCrossOrigin(receivedHeaders(c), c.req.raw, pagesOf(c.req.url, hosts))
      const user = await findUser(c)
      const url = await signOutUrl(user)
      if (user !== undefined) await endSessionOf(user)
      const response = redirect(url?.href ?? SIGNED_OUT_PATH, [removeCookie(SESSION_COOKIE)])
      // The browser must not show pages of the user again, such as with its back button.
      response.headers.set('Clear-Site-Data', '"cache"')
      return response
    },
  })

  page(BACK_CHANNEL_LOGOUT_PATH, {
    async POST(c) {
      const token = (await readForm(c)).get('logout_token') ?? ''
      const issuer = issuerOfLogout(token)
      const provider = providers.find((one) => one.issuer === issuer)
      if (provider === undefined) throw signInRefused('logout_token_iss')
      const logout = await provider.logoutToken(token, waitUntilOf(c))
      await providerSessions.endByProvider(provider.issuer, logout)
      return c.body(null, 200, NO_STORE)
    },
  })

  /** The list is at `PUBLIC_URL`: pages of another host must not see the devices of the user, or end their sessions. */
  function refuseOtherHost(c: SignInContext): void {
    if (hosts.otherOf(c.req.url) !== undefined) throw new Denied({ code: 'not_found' })
  }

  async function endListed(user: Principal, owner: SessionOwner, id: unknown): Promise<boolean> {
    const session = (await sessions.list(user)).find((one) => one.id === id)
    if (session !== undefined) await sessions.end(session.id, owner)
    return session !== undefined
  }

  page(SESSIONS_PATH, {
    async GET(c) {
      if (hosts.otherOf(c.req.url) !== undefined && !isForPrograms(c))
        return redirect(publicUrl + SESSIONS_PATH, [])
      refuseOtherHost(c)
      const user = await findUser(c)
      if (user === undefined) {
        if (isForPrograms(c)) throw signInRequired()
        return redirect(signInPath({ returnPath: SESSIONS_PATH }), [])
      }
      const listed = await sessions.list(user)
      if (isForPrograms(c))
        return c.json(sessionsView(listed, user.tokenId), 200, { ...NO_STORE, Vary: 'Accept' })
      return renderPage(c, (language) => sessionsPage(language, listed, user.tokenId))
    },
    async POST(c) {
      refuseOtherHost(c)
      refuseCrossOrigin(receivedHeaders(c), c.req.raw, pagesOf(c.req.url, hosts))
      const user = await findUser(c)
      const owner = user && ownerOf(user)
      if (user === undefined || owner === undefined) throw signInRefused('no_session')
      const id = (await readForm(c)).get('session')
      if (!(await endListed(user, owner, id))) throw signInRefused('session_unknown')
      return redirect(SESSIONS_PATH, [])
    },
  })

  page(SESSION_PATH, {
    async DELETE(c) {
      refuseOtherHost(c)
      refuseCrossOrigin(receivedHeaders(c), c.req.raw, pagesOf(c.req.url, hosts))
      const user = await findUser(c)
      const owner = user && ownerOf(user)
      if (user === undefined || owner === undefined) throw signInRequired()
      if (!(await endListed(user, owner, c.req.param('id'))))
        throw new Denied({ code: 'not_found', check: 'session' })
      return c.body(null, 204, NO_STORE)
    },
  })

  page(SIGNED_OUT_PATH, { GET: (c) => renderPage(c, signedOutPage) })
  return app
}

/** Reports whether a user who is signed in must sign in again, and not choose another account. */
const isStepUp = ({ prompt, maxAgeSeconds, acr }: SignInDemand): boolean =>
  prompt !== 'select_account' && (prompt ?? maxAgeSeconds ?? acr) !== undefined

/** Returns the failure of a response that belongs to no known login. */
function ofUnknownLogin(error: unknown) {
  if (!(error instanceof Denied)) throw error
  return { failure: error, provider: undefined, returnPath: undefined }
}

/** Reports whether a script or a program sent the request, and not a person through a page. */
const isForPrograms = (c: Context): boolean =>
  c.req.method === 'DELETE' || JSON_TYPE.test(c.req.header('Accept') ?? '')

const bindBrowser = ({ name, secret }: BrowserCookie): string =>
  `${setCookie(name, secret)}; Max-Age=${LOGIN_SECONDS}`

const signInRequired = () => new Denied({ code: 'sign_in_required', check: 'no_session' })

/** Throws `Denied` (`sign_in_refused`) for another type. */
async function readForm(c: SignInContext): Promise<URLSearchParams> {
  if (!FORM_TYPE.test(c.req.header('Content-Type') ?? '')) throw signInRefused('content_type')
  const bytes = await readWhole(bodyOf(c), FORM_TIMEOUT_MS)
  return new URLSearchParams(new TextDecoder().decode(bytes))
}

/** The authorization endpoint over HTTP: `/oauth/authorize`, and what the user decides there. */
import type { Context, Hono, MiddlewareHandler } from 'hono'
import { Denied } from '../../errors.ts'
import { createApp } from '../../http/router.ts'
import { clientAddressOf, type GatewayVariables } from '../../middleware/context.ts'
import { stage } from '../../middleware/in-order.ts'
import { limitBody } from '../../middleware/limit-body.ts'
import { receivedHeaders } from '../../middleware/request-headers.ts'
import {
  type AuthorizationEndpoint,
  isFresh,
  LOGIN_SECONDS,
  type ReadRequest,
  type RedirectTarget,
} from '../../oauth/code/authorization-endpoint.ts'
import {
  type AuthorizationRequest,
  parseAuthorizationRequest,
  promptsAfterLogin,
} from '../../oauth/code/authorization-request.ts'
import type { Withdrawal } from '../../oauth/code/withdrawal.ts'
import { AUTHORIZE_PATH } from '../../oauth/metadata.ts'
import type { FoundClient } from '../../oauth/registration/directory.ts'
import { type PolicyLimit, routeOf } from '../../policy/route.ts'
import type { SignedInUsers } from '../../sign-in/signed-in-user.ts'
import { oauthRefused } from '../../tokens/rejection.ts'
import { refuseCrossOrigin } from '../../tokens/token-cookie.ts'
import type { RenderPage } from '../sign-in/page.ts'
import {
  CONSENT_PATH,
  CONSENTS_PATH,
  consentPage,
  consentsPage,
  refusalPage,
  type ScopeWords,
} from './consent-pages.ts'
import { OAUTH_HEADERS, oauthProblemOf } from './error.ts'
import { formOf } from './routes.ts'

export interface AuthorizeOptions {
  readonly endpoint: AuthorizationEndpoint
  readonly withdrawal: Withdrawal
  readonly users: SignedInUsers
  readonly renderPage: RenderPage
  /** Refuses an address that is banned or has used up `limit`. */
  readonly admitAddress: MiddlewareHandler
  readonly limit: PolicyLimit
  /** The gateway's public URL. */
  readonly publicUrl: string
  readonly words: ScopeWords
  readonly schemes: readonly string[]
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

type Environment = { Variables: GatewayVariables }
type AuthorizeContext = Context<Environment>

/** Where errors go. Set as soon as the redirect URI is verified. */
const REDIRECT = 'portcullis.redirect' as never
/** See `ChangeVariables`. */
const CHANGE = 'portcullis.change' as never

const MAX_BODY_BYTES = 8_192
/** The request must fit into the address of the page to which the login returns. */
const MAX_QUERY_CHARS = 3_600
/** By how much the clocks of providers differ. */
const CLOCK_TOLERANCE_SECONDS = 60

/**
 * Creates the pages. An error goes to the redirect URI only after that has been verified; before, it
 * is a page. No other page may send the forms, and none may frame them.
 */
export function authorizeRoutes(options: AuthorizeOptions): Hono<Environment> {
  const { endpoint, withdrawal, users, renderPage, publicUrl, words, schemes, now } = options
  const { admitAddress, limit } = options
  const bounded = [
    stage('limitBody', limitBody({ maxBytes: MAX_BODY_BYTES })),
    stage('admit', admitAddress),
  ] as const
  const app = createApp<Environment>()

  app.onError(function answerRefusal(error, c) {
    const target = c.get(REDIRECT) as RedirectTarget | undefined
    const { status, error: code, description, headers } = oauthProblemOf(error)
    const isForClient = error instanceof Denied && error.denial.code === 'oauth_refused'
    if (target === undefined || !isForClient)
      return renderPage(c, refusalPage({ status, error: code, description, headers }))
    return redirect(endpoint.responseUrl(target, { error: code, error_description: description }))
  })

  /** Returns the user of the browser. Throws the response that sends it to the sign-in. */
  async function userOf(
    c: AuthorizeContext,
    demand: { returnPath: string; prompt?: 'login' | 'select_account'; maxAgeSeconds?: number },
  ) {
    const found = await users.find({
      request: c.req.raw,
      address: clientAddressOf(c),
      ...demand,
    })
    if ('signInPath' in found) return found
    c.set('portcullis.principal', found.principal)
    return found
  }

  async function found(c: AuthorizeContext, read: ReadRequest): Promise<FoundClient | Response> {
    let search = await endpoint.search(read.clientId)
    if ('missing' in search && search.missing === 'unread') {
      // Only for a signed-in user does the gateway call the host that a client names.
      if (promptsIn(read).includes('none'))
        throw oauthRefused('login_required', 'client_document_unread')
      const user = await userOf(c, { returnPath: pathAndQuery(c) })
      if ('signInPath' in user) return redirect(user.signInPath)
      search = await endpoint.searchFor(user, read.clientId)
    }
    if ('missing' in search) throw oauthRefused('invalid_request', `client_${search.missing}`)
    return search
  }

  /** Returns the user whose login meets the request, or the redirect to the sign-in. */
  async function signedIn(c: AuthorizeContext, request: AuthorizationRequest) {
    const { prompts, maxAgeSeconds, loginAfterSeconds } = request
    const nowSeconds = Math.floor(now() / 1000)
    const hasLoggedIn = loginAfterSeconds !== undefined && isFresh(loginAfterSeconds, now())
    const forced = hasLoggedIn
      ? undefined
      : prompts.has('login')
        ? 'login'
        : prompts.has('select_account')
          ? 'select_account'
          : undefined
    if (prompts.has('none') && forced !== undefined)
      throw oauthRefused('invalid_request', 'authorize_prompt')
    const returnPath =
      forced === undefined && maxAgeSeconds === undefined
        ? pathAndQuery(c)
        : afterLogin(c, request, hasLoggedIn ? loginAfterSeconds : nowSeconds)
    // With `max_age`, the provider must say when the user logged in. Otherwise, nothing shows it.
    const ageSeconds = forced === 'login' ? (maxAgeSeconds ?? LOGIN_SECONDS) : maxAgeSeconds
    const user = await userOf(c, {
      returnPath,
      ...(forced !== undefined && { prompt: forced }),
      ...(ageSeconds !== undefined && !hasLoggedIn && { maxAgeSeconds: ageSeconds }),
    })
    if ('signInPath' in user) {
      if (prompts.has('none')) throw oauthRefused('login_required', 'authorize_login')
      return redirect(user.signInPath)
    }
    // The provider did not let the user log in again, or does not say so. Another redirect would
    // repeat for ever. The choice of an account needs no new login, but a new session.
    const loginAtSeconds = prompts.has('select_account')
      ? user.principal.issuedAtSeconds
      : (user.authenticatedAtSeconds ?? Number.NEGATIVE_INFINITY)
    if (hasLoggedIn && loginAtSeconds < loginAfterSeconds - CLOCK_TOLERANCE_SECONDS)
      throw oauthRefused('login_required', 'authorize_login_age')
    return user
  }

  /** Names the path in the audit event. */
  function matched(method: 'GET' | 'POST', path: string): void {
    const route = routeOf({ method, path, limits: [limit] })
    app.all(path, (c, next) => {
      c.set('portcullis.route', route)
      c.set('portcullis.principal', null)
      return next()
    })
  }

  matched('GET', AUTHORIZE_PATH)
  app.get(AUTHORIZE_PATH, ...bounded, async function authorize(c) {
    const query = new URL(c.req.url).search.slice(1)
    if (query.length > MAX_QUERY_CHARS) throw oauthRefused('invalid_request', 'authorize_length')
    const read = await endpoint.read(query)
    if ('query' in read) return redirect(`${AUTHORIZE_PATH}?${read.query}`)
    const client = await found(c, read)
    if (client instanceof Response) return client
    const target = endpoint.targetOf(client, read.form)
    c.set(REDIRECT, target as never)
    const request = parseAuthorizationRequest(read.form)
    const user = await signedIn(c, request)
    if (user instanceof Response) return user
    const proposed = endpoint.propose(client, user, request, { ...target, pushed: read.pushed })
    const isAllowed = !request.prompts.has('consent') && (await endpoint.isAllowed(user, proposed))
    if (isAllowed) {
      const code = await endpoint.issue(user, proposed, { isRepeated: true })
      return redirect(endpoint.responseUrl(target, { code }))
    }
    if (request.prompts.has('none')) throw oauthRefused('consent_required', 'authorize_consent')
    const page = consentPage({
      authorization: proposed,
      origin: client.origin,
      handle: await endpoint.hold(proposed),
      subject: user.principal.subject,
      publicUrl,
      words,
      schemes,
    })
    return renderPage(c, page)
  })

  matched('POST', CONSENT_PATH)
  app.post(CONSENT_PATH, ...bounded, async function decide(c) {
    const form = await submitted(c)
    // The user has just seen the page. After a session of minutes, the app must start again.
    const user = await userOf(c, { returnPath: CONSENTS_PATH })
    if ('signInPath' in user) throw oauthRefused('login_required', 'consent_login')
    const authorization = await endpoint.taken(form.one('request'), user)
    const target = { redirectUri: authorization.redirectUri, state: authorization.state }
    c.set(REDIRECT, target as never)
    if (form.one('decision') !== 'allow') throw oauthRefused('access_denied', 'consent_denied')
    const search = await endpoint.search(authorization.client)
    // A document that left the cache meanwhile was valid when the user saw it.
    if ('missing' in search && search.missing !== 'unread')
      throw oauthRefused('unauthorized_client', `client_${search.missing}`)
    const code = await endpoint.issue(user, authorization, { isRepeated: false })
    c.set(CHANGE, { action: 'consent.allow', target: authorization.client } as never)
    return redirect(endpoint.responseUrl(target, { code }))
  })

  matched('GET', CONSENTS_PATH)
  app.get(CONSENTS_PATH, ...bounded, async function list(c) {
    const user = await userOf(c, { returnPath: CONSENTS_PATH })
    if ('signInPath' in user) return redirect(user.signInPath)
    return renderPage(c, consentsPage(await withdrawal.list(user.principal), words))
  })
  app.post(CONSENTS_PATH, ...bounded, async function withdraw(c) {
    const form = await submitted(c)
    const user = await userOf(c, { returnPath: CONSENTS_PATH })
    if ('signInPath' in user) return redirect(user.signInPath)
    const client = form.one('client')
    if (client === undefined) throw oauthRefused('invalid_request', 'consent_client')
    await withdrawal.withdraw(user.principal, client)
    c.set(CHANGE, { action: 'consent.withdraw', target: client } as never)
    return redirect(CONSENTS_PATH)
  })

  /** Returns the form that a page of the gateway itself has sent. */
  async function submitted(c: AuthorizeContext) {
    const pages = { ownOrigin: new URL(publicUrl).origin, others: [], acceptsOtherClients: false }
    refuseCrossOrigin(receivedHeaders(c), c.req, pages)
    return formOf(c)
  }

  for (const [path, allow] of [
    [AUTHORIZE_PATH, ['GET', 'HEAD']],
    [CONSENT_PATH, ['POST']],
    [CONSENTS_PATH, ['GET', 'HEAD', 'POST']],
  ] as const)
    app.all(path, async function refuseMethod() {
      throw new Denied({ code: 'method_not_allowed', allow })
    })
  return app
}

/** 303, so that no browser sends the form again (RFC 9700 section 4.12). */
const redirect = (location: string): Response =>
  new Response(null, {
    status: 303,
    headers: { ...OAUTH_HEADERS, Location: location, 'Referrer-Policy': 'no-referrer' },
  })

function pathAndQuery(c: Context): string {
  const { pathname, search } = new URL(c.req.url)
  return pathname + search
}

const promptsIn = ({ form }: ReadRequest): readonly string[] => form.one('prompt')?.split(' ') ?? []

/** Returns the address of the same request after a login: it demands one after `loginAfterSeconds`. */
function afterLogin(
  c: Context,
  { prompts }: AuthorizationRequest,
  loginAfterSeconds: number,
): string {
  const { pathname, searchParams } = new URL(c.req.url)
  searchParams.delete('prompt')
  searchParams.delete('max_age')
  const left = promptsAfterLogin([...prompts])
  if (left.length > 0) searchParams.set('prompt', left.join(' '))
  searchParams.set('login_after', String(loginAfterSeconds))
  return `${pathname}?${searchParams}`
}

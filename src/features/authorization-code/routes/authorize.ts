/** The authorization endpoint over HTTP: `/oauth/authorize`, and what the user decides there. */
import type { Context, Hono, MiddlewareHandler } from 'hono'
import { oauthRefused } from '../../../access/tokens/rejection.ts'
import { refuseCrossOrigin } from '../../../access/tokens/token-cookie.ts'
import { Denied, Unavailable } from '../../../errors.ts'
import { createApp } from '../../../http/router.ts'
import { clientAddressOf, type GatewayVariables } from '../../../middleware/context.ts'
import { stage } from '../../../middleware/in-order.ts'
import { limitBody } from '../../../middleware/limit-body.ts'
import { receivedHeaders } from '../../../middleware/request-headers.ts'
import { type PolicyLimit, routeOf } from '../../../policy/route.ts'
import { AUTHORIZE_PATH } from '../../authorization-server/metadata.ts'
import { OAUTH_HEADERS, oauthProblemOf } from '../../authorization-server/routes/error.ts'
import { formOf } from '../../authorization-server/routes/routes.ts'
import type { RenderPage } from '../../sign-in/pages/page.ts'
import type { SignedInUsers } from '../../sign-in/signed-in-user.ts'
import {
  type AuthorizationEndpoint,
  LOGIN_SECONDS,
  type ReadRequest,
  type RedirectTarget,
  type RequestUser,
} from '../authorization-endpoint.ts'
import { type AuthorizationRequest, parseAuthorizationRequest } from '../authorization-request.ts'
import type { FoundClient } from '../registration/directory.ts'
import type { Withdrawal } from '../withdrawal.ts'
import {
  CONSENT_PATH,
  CONSENTS_PATH,
  consentPage,
  consentsPage,
  refusalPage,
  type ScopeWords,
} from './consent-pages.ts'

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

interface ErrorTarget extends RedirectTarget {
  /** Whether the user, or the operator, has decided about the redirect URI. */
  readonly isTrusted: boolean
  readonly clientId: string
  /** Undefined: no user is signed in, as far as the request was read. */
  readonly user?: RequestUser
}

/** See `ChangeVariables`. */
const CHANGE = 'portcullis.change' as never

const MAX_BODY_BYTES = 8_192
/** The request must fit into the address of the page to which the login returns. */
const MAX_QUERY_CHARS = 3_600
/** By how much the clocks of providers differ. */
const CLOCK_TOLERANCE_SECONDS = 60

/**
 * Creates the pages. An error goes to the redirect URI only after that has been verified; before, it
 * is a page. Anyone can register a client, or describe one in a document. So errors go to the
 * redirect URI of such a client only if the signed-in user has allowed the client before, or has
 * decided now (RFC 9700 section 4.11.2). No other page may submit the forms, and no page may frame
 * them.
 */
export function authorizeRoutes(options: AuthorizeOptions): Hono<Environment> {
  const { endpoint, withdrawal, users, renderPage, publicUrl, words, schemes, now } = options
  const { admitAddress, limit } = options
  const bounded = [
    stage('limitBody', limitBody({ maxBytes: MAX_BODY_BYTES })),
    stage('admit', admitAddress),
  ] as const
  const app = createApp<Environment>()

  app.onError(async function answerRefusal(error, c) {
    const target = c.get(REDIRECT) as ErrorTarget | undefined
    const { status, error: code, description, headers } = oauthProblemOf(error)
    const denial = error instanceof Denied ? error.denial : undefined
    const isForClient = denial?.code === 'oauth_refused'
    const lacksPermissions = isForClient && denial.check === 'scope_not_held'
    const page = { status, error: code, description, headers, lacksPermissions }
    if (target === undefined || !isForClient) return renderPage(c, refusalPage(page))
    const url = endpoint.responseUrl(target, { error: code, error_description: description })
    if (await isTrusted(target)) return redirect(url)
    return renderPage(c, refusalPage({ ...page, returnTo: target.user && url }))
  })

  async function isTrusted({ isTrusted, user, clientId, redirectUri }: ErrorTarget) {
    if (isTrusted || user === undefined) return isTrusted
    try {
      return await endpoint.hasAllowed(user, clientId, redirectUri)
    } catch (error) {
      // The refusal is the answer, whatever the store knows.
      if (error instanceof Unavailable) return false
      throw error
    }
  }

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
  async function signedIn(c: AuthorizeContext, read: ReadRequest, request: AuthorizationRequest) {
    const { prompts, maxAgeSeconds } = request
    const { loginAfterSeconds } = read
    const prompt = (['login', 'select_account'] as const).find((name) => prompts.has(name))
    if (prompts.has('none') && prompt !== undefined)
      throw oauthRefused('invalid_request', 'authorize_prompt')
    // With `max_age`, the provider must say when the user logged in. Otherwise, nothing shows it.
    const ageSeconds = prompt === 'login' ? (maxAgeSeconds ?? LOGIN_SECONDS) : maxAgeSeconds
    const isTimed = prompt !== undefined || ageSeconds !== undefined
    const demand =
      loginAfterSeconds !== undefined
        ? {}
        : {
            ...(prompt !== undefined && { prompt }),
            ...(ageSeconds !== undefined && { maxAgeSeconds: ageSeconds }),
          }
    let user = await userOf(c, { returnPath: pathAndQuery(c), ...demand })
    if ('signInPath' in user) {
      if (prompts.has('none')) throw oauthRefused('login_required', 'authorize_login')
      if (isTimed && loginAfterSeconds === undefined) {
        const atSeconds = Math.floor(now() / 1000)
        const query = await endpoint.awaitLogin(read, { address: clientAddressOf(c), atSeconds })
        user = await userOf(c, { returnPath: `${AUTHORIZE_PATH}?${query}`, ...demand })
      }
      if ('signInPath' in user) return redirect(user.signInPath)
    }
    if (loginAfterSeconds === undefined) return user
    // The provider did not let the user log in again, or does not say so. Another redirect would
    // repeat for ever. The choice of an account needs no new login, but a new session.
    const demandedSeconds = loginAfterSeconds - CLOCK_TOLERANCE_SECONDS
    const oldestSeconds = demandedSeconds - (prompt === 'login' ? 0 : (maxAgeSeconds ?? 0))
    const { authenticatedAtSeconds = Number.NEGATIVE_INFINITY, principal } = user
    const isOld = ageSeconds !== undefined && authenticatedAtSeconds < oldestSeconds
    if (isOld || (prompt === 'select_account' && principal.issuedAtSeconds < demandedSeconds))
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
    const isTrusted = client.origin === 'operator'
    const errorTarget: ErrorTarget = { ...target, isTrusted, clientId: client.client.id }
    c.set(REDIRECT, errorTarget as never)
    const request = parseAuthorizationRequest(read.form)
    const user = await signedIn(c, read, request)
    if (user instanceof Response) return user
    c.set(REDIRECT, { ...errorTarget, user } as never)
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
    const { client: clientId } = authorization
    c.set(REDIRECT, { ...target, isTrusted: true, clientId } satisfies ErrorTarget as never)
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
    return renderPage(c, consentsPage(await withdrawal.listOwn(user.principal), words))
  })
  app.post(CONSENTS_PATH, ...bounded, async function withdraw(c) {
    const form = await submitted(c)
    const user = await userOf(c, { returnPath: CONSENTS_PATH })
    if ('signInPath' in user) return redirect(user.signInPath)
    const client = form.one('client')
    if (client === undefined) throw oauthRefused('invalid_request', 'consent_client')
    // Otherwise the form could write any text into the audit trail.
    if (await withdrawal.withdrawOwn(user.principal, client))
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

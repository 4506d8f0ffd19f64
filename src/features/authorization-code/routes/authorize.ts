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
import { completeRoute, type PolicyLimit } from '../../../policy/route.ts'
import { AUTHORIZE_PATH } from '../../authorization-server/metadata.ts'
import { OAUTH_HEADERS, oauthProblemOf } from '../../authorization-server/routes/error.ts'
import { readForm } from '../../authorization-server/routes/routes.ts'
import { accountNameOf } from '../../sign-in/account-name.ts'
import { preferLocales } from '../../sign-in/rendering/language.ts'
import type { RenderPage } from '../../sign-in/rendering/page.ts'
import type { SignedInUsers } from '../../sign-in/signed-in-user.ts'
import type { AuthorizationEndpoint } from '../authorization-endpoint.ts'
import { type Browser, createAuthorizationSteps, type ErrorTarget } from '../authorization-steps.ts'
import type { Withdrawal } from '../withdrawal.ts'
import {
  CONSENT_PATH,
  CONSENTS_PATH,
  consentPage,
  consentsPage,
  refusalPage,
  type ScopeWords,
} from './consent-pages.ts'
import { DESCRIPTIONS } from './descriptions.ts'

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
  /** Returns the host of a request if it is not that of `publicUrl`. */
  readonly otherHostOf: (url: string) => string | undefined
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
/**
 * Creates the pages. An error goes to the redirect URI only after that has been verified; before, it
 * is a page. Anyone can register a client, or describe one in a document. So errors go to the
 * redirect URI of such a client only if the signed-in user has allowed the client before, or has
 * decided now (RFC 9700 section 4.11.2). A mistake in the parameters is refused before the user is
 * known, and is always a page for such a client. No other page may submit the forms, and no page may
 * frame them.
 */
export function authorizeRoutes(options: AuthorizeOptions): Hono<Environment> {
  const { endpoint, withdrawal, users, renderPage, publicUrl, words, schemes, now } = options
  const { admitAddress, limit, otherHostOf } = options
  const bounded = [
    stage('limitBody', limitBody({ maxBytes: MAX_BODY_BYTES })),
    stage('admit', admitAddress),
  ] as const
  const steps = createAuthorizationSteps(endpoint, now)
  const app = createApp<Environment>()

  app.onError(async function answerRefusal(error, c) {
    const target = c.get(REDIRECT) as ErrorTarget | undefined
    const { status, error: code, description, headers } = oauthProblemOf(error, DESCRIPTIONS)
    const denial = error instanceof Denied ? error.denial : undefined
    const isForClient = denial?.code === 'oauth_refused'
    const lacksPermissions = isForClient && denial.check === 'scope_not_held'
    const page = { status, error: code, description, headers, lacksPermissions }
    if (target === undefined || !isForClient)
      return renderPage(c, (language) => refusalPage(language, page))
    const url = endpoint.responseUrl(target, { error: code, error_description: description })
    if (await isTrusted(target)) return redirect(url)
    const returnTo = target.user && url
    return renderPage(c, (language) => refusalPage(language, { ...page, returnTo }))
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

  const createBrowser = (c: AuthorizeContext, returnPath: string): Browser => ({
    address: clientAddressOf(c),
    returnPath,
    async findUser(demand) {
      const found = await users.find({
        request: c.req.raw,
        address: clientAddressOf(c),
        ...demand,
      })
      if ('principal' in found) c.set('portcullis.principal', found.principal)
      return found
    },
    sendErrorsTo: (target) => c.set(REDIRECT, target as never),
    preferLocales: (locales) => preferLocales(c, locales),
  })

  const findConsentingUser = (c: AuthorizeContext) =>
    createBrowser(c, CONSENTS_PATH).findUser({ returnPath: CONSENTS_PATH })

  /**
   * Names the path in the audit event. The session of another host is of no use here: a script of its pages
   * could otherwise allow an app for `publicUrl`.
   */
  function matched(method: 'GET' | 'POST', path: string): void {
    const route = completeRoute({ method, path, limits: [limit] })
    app.all(path, (c, next) => {
      c.set('portcullis.route', route)
      c.set('portcullis.principal', null)
      if (otherHostOf(c.req.url) === undefined) return next()
      if (method === 'POST' || c.req.method !== 'GET')
        throw new Denied({ code: 'cross_origin_request', check: 'origin' })
      const { pathname, search } = new URL(c.req.url)
      return Promise.resolve(redirect(publicUrl + pathname + search))
    })
  }

  matched('GET', AUTHORIZE_PATH)
  app.get(AUTHORIZE_PATH, ...bounded, async function authorize(c) {
    const { pathname, search } = new URL(c.req.url)
    const path = pathname + search
    const next = await steps.authorize(search.slice(1), createBrowser(c, path))
    if ('redirect' in next) return redirect(next.redirect)
    const { user, ...consent } = next
    const account = accountNameOf(user.principal)
    const shown = { ...consent, account, path, publicUrl, words, schemes }
    return renderPage(c, (language) => consentPage(language, shown))
  })

  matched('POST', CONSENT_PATH)
  app.post(CONSENT_PATH, ...bounded, async function decide(c) {
    const form = await submitted(c)
    const decision = { handle: form.one('request'), isAllowed: form.one('decision') === 'allow' }
    const decided = await steps.decide(decision, createBrowser(c, CONSENTS_PATH))
    c.set(CHANGE, { action: 'consent.allow', target: decided.client } as never)
    return redirect(decided.redirect)
  })

  matched('GET', CONSENTS_PATH)
  app.get(CONSENTS_PATH, ...bounded, async function list(c) {
    const user = await findConsentingUser(c)
    if ('signInPath' in user) return redirect(user.signInPath)
    const consents = await withdrawal.listOwn(user.principal)
    return renderPage(c, (language) => consentsPage(language, consents, words))
  })
  app.post(CONSENTS_PATH, ...bounded, async function withdraw(c) {
    const form = await submitted(c)
    const user = await findConsentingUser(c)
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
    return readForm(c)
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

/** The stages of a route with browser sessions: they accept the cookie, and ask for a login. */
import type { Context, MiddlewareHandler, Next } from 'hono'
import type { Principal, SignInFacts } from '../../access/principal.ts'
import { credentialHash } from '../../access/tokens/reference.ts'
import type { References } from '../../access/tokens/references.ts'
import { type Pages, refuseCrossOrigin } from '../../access/tokens/token-cookie.ts'
import type { TokenSources } from '../../access/tokens/token-sources.ts'
import { reasonOfDenial } from '../../audit/reason.ts'
import { Denied, ignoreOutage } from '../../errors.ts'
import { targetOf } from '../../http/path.ts'
import { dropResponse } from '../../http/replaced-response.ts'
import { NO_STORE, writeHeaders } from '../../http/response-headers.ts'
import { fieldsOf, makePrivate, varyBy } from '../../http/shared-caches.ts'
import { type AdmitOptions, admit } from '../../middleware/admit.ts'
import { callerOf, type GatewayVariables, observe, waitUntilOf } from '../../middleware/context.ts'
import { receivedHeaders } from '../../middleware/request-headers.ts'
import type { Check } from '../../problems/checks.ts'
import type { Denial } from '../../problems/reasons.ts'
import type { LoginDemand } from '../../problems/step-up.ts'
import type { Hosts } from './hosts.ts'
import { isNavigation } from './navigation.ts'
import { signInPath } from './return-path.ts'
import { readSession, SESSION_COOKIE, setCookie } from './session.ts'
import type { Sessions } from './sessions.ts'

export interface SessionRenewal {
  readonly sessions: Pick<Sessions, 'renew' | 'keepAlive'>
  /** Refreshes the provider's tokens of a session. Must not reject. */
  readonly refresh: (principal: Principal) => Promise<void>
}

export interface BrowserSessionOptions {
  /** The cache that `admit` uses. */
  readonly references: References
  /** What keeps a session alive. Undefined: the stages write nothing, for explanations. */
  readonly renewal: SessionRenewal | undefined
  /**
   * Reports whether a person caused the request, so that it keeps the session alive. Default: every request does.
   * Otherwise a page that loads itself would defeat the idle time.
   */
  readonly isAttended?: ((url: URL) => boolean) | undefined
  /** Pages of the origin of the request's host may send requests with unsafe methods. */
  readonly hosts: Hosts
  /**
   * Whether a request without a credential is refused with `sign_in_required`, so that a navigation leads
   * to the sign-in. Default true; otherwise it is refused as without sessions.
   */
  readonly asksForLogin?: boolean
  /** The host of the route. Default: the route is on every host, and accepts only sessions of `PUBLIC_URL`. */
  readonly routeHost?: string | undefined
  /** What the login of the user must be, which `stepUp` checks. Default: any login. */
  readonly demand?: LoginDemand | undefined
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/** The stages, in the order of the pipeline. */
export interface SessionStages {
  /** Redirects navigations without a valid session to the sign-in. */
  readonly arrival: readonly MiddlewareHandler[]
  /**
   * Takes the place of `authenticate`, which it calls for requests without a session. `sources` are those
   * of `authenticate`.
   */
  identify(authenticate: MiddlewareHandler, sources?: TokenSources): MiddlewareHandler
  /** After `admit` and `stepUp`: refuse a session of another host, and renew the session. */
  readonly admitted: readonly MiddlewareHandler[]
}

/** The stages of a route for everybody. */
export interface OptionalSessionStages extends Pick<SessionStages, 'identify' | 'admitted'> {
  /** Creates the stage `admit`, which admits a caller whose session has ended without a name. */
  admit(options: AdmitOptions): MiddlewareHandler
}

type BrowserContext = Context<{ Variables: GatewayVariables }>

const SIGN_IN_FIELDS = ['Cookie', 'Sec-Fetch-Mode', 'Accept']

/**
 * Creates the stages of a route whose callers are browsers with a session, or clients with a token in
 * `Authorization`.
 *
 * A session is a reference, which `admit` resolves in its call to Redis. Throws `Denied`:
 *
 * - `sign_in_required` without a valid session or token. A navigation is redirected to the sign-in
 *   instead, and comes back afterwards; so it is if a later stage throws it.
 * - `ambiguous_credentials` for a session and a token in any source together, or for two sessions.
 * - `cross_origin_request` for an unsafe method with a session, unless the browser says that a page of
 *   this gateway sent it.
 *
 * A session that the store cannot renew is used on until it ends.
 *
 * @example
 * ```ts
 * const { arrival, identify, admitted } = browserSession({ references, renewal, hosts, now })
 * app.use(...arrival, identify(authenticate({ verifier })), admit({ admission }), ...admitted)
 * ```
 */
export function browserSession({
  references,
  renewal,
  hosts,
  asksForLogin = true,
  isAttended,
  routeHost,
  demand = {},
  now,
}: BrowserSessionOptions): SessionStages {
  async function useSession(c: BrowserContext, text: string, next: Next) {
    const principal = references.recall(text)
    if (principal !== undefined) c.set('portcullis.principal', principal)
    else
      c.set('portcullis.pending', {
        reference: { kind: 'session', text, hash: await credentialHash(text) },
        proof: undefined,
        check: undefined,
        identified: (resolved) => c.set('portcullis.principal', resolved),
      })
    await next()
    const { error } = c
    const ended = error instanceof Denied && endOfSession(error.denial)
    if (ended) {
      dropResponse(c)
      throw signInRequired(ended)
    }
    writeHeaders(c, (headers) => {
      const fields = fieldsOf(headers)
      makePrivate(fields)
      varyBy(fields, ['Cookie'])
    })
  }

  async function redirect(c: BrowserContext, next: Next) {
    await next()
    if (!(c.error instanceof Denied) || c.error.denial.code !== 'sign_in_required') return
    const received = receivedHeaders(c)
    if (!isNavigation(c.req.method, received)) return
    const location = signInPath({ returnPath: targetOf(c.req.url), ...demand })
    const headers = { ...NO_STORE, Location: location, Vary: SIGN_IN_FIELDS.join(', ') }
    dropResponse(c)
    c.res = new Response(null, { status: 303, headers })
  }

  /**
   * A session of one host is of no use at another one, nor for a route of every host: the pages of the other
   * host may belong to somebody else. A login there changes nothing, so the answer is no redirect.
   */
  function requireHost(c: BrowserContext, next: Next) {
    const { signIn } = callerOf(c, 'requireHost') ?? {}
    if (signIn === undefined || isUsable(signIn, c.req.url, hosts, routeHost)) return next()
    if (signIn.host !== hosts.otherOf(c.req.url)) throw signInRequired('host')
    throw new Denied({ code: 'not_found' })
  }

  async function renew(c: BrowserContext, next: Next) {
    const principal = callerOf(c, 'renew')
    const { signIn } = principal ?? {}
    const received = receivedHeaders(c)
    const text = readSession(received)
    if (principal === null || signIn === undefined || text === undefined) return next()
    if (renewal === undefined || isAttended?.(new URL(c.req.url)) === false) return next()
    const { sessions, refresh } = renewal
    const nowSeconds = now() / 1000
    if (nowSeconds >= (signIn.refreshAtSeconds ?? Number.POSITIVE_INFINITY))
      waitUntilOf(c)(refresh(principal))
    if (nowSeconds < signIn.renewAtSeconds || received.has('upgrade')) return next()
    const renewed = sessions.renew(text, principal).catch(ignoreOutage)
    if (signIn.host !== undefined) waitUntilOf(c)(sessions.keepAlive(principal).catch(ignoreOutage))
    await next()
    const reference = await renewed
    if (reference === undefined) return
    writeHeaders(c, (headers) => headers.append('Set-Cookie', setCookie(SESSION_COOKIE, reference)))
  }

  return {
    arrival: [redirect],
    identify: (authenticate, sources) =>
      async function identify(c: BrowserContext, next) {
        const received = receivedHeaders(c)
        const text = readSession(received)
        if (text === undefined) {
          if (!asksForLogin) return authenticate(c, next)
          try {
            await authenticate(c, next)
          } catch (error) {
            if (!(error instanceof Denied) || error.denial.code !== 'missing_token') throw error
            throw signInRequired('no_session')
          }
          return
        }
        const hasOther =
          received.has('authorization') ||
          c.get('portcullis.unverifiedAuthorization') !== undefined ||
          sources?.isPresent(received)
        if (hasOther) throw new Denied({ code: 'ambiguous_credentials', check: 'sources' })
        refuseCrossOrigin(received, c.req.raw, pagesOf(c.req.url, hosts))
        await useSession(c, text, next)
      },
    admitted: [requireHost, renew],
  }
}

/**
 * Creates the stages of an anonymous route that names a signed-in user to its origin. As
 * `browserSession`, except that a caller without a session, or with one that has ended, is anonymous: such a
 * session costs a second call to Redis.
 */
export function optionalSession(options: BrowserSessionOptions): OptionalSessionStages {
  const { identify, admitted } = browserSession({ ...options, asksForLogin: false })
  const { hosts, routeHost } = options

  /** As `requireHost`, except that the caller is anonymous. */
  function forgetOtherHost(c: BrowserContext, next: Next) {
    const { signIn } = callerOf(c, 'forgetOtherHost') ?? {}
    if (signIn !== undefined && !isUsable(signIn, c.req.url, hosts, routeHost))
      c.set('portcullis.principal', null)
    return next()
  }

  return {
    identify(authenticate, sources) {
      const ofSession = identify(authenticate, sources)
      return async function identify(c, next) {
        await ofSession(c, next)
        // A shared cache must not give the page of one caller to another one.
        writeHeaders(c, (headers) => varyBy(fieldsOf(headers), ['Cookie']))
      }
    },
    admit(options) {
      const admitCaller: MiddlewareHandler = admit(options)
      // The first call has counted the others.
      const limits = options.limits?.filter(
        ({ by, meter }) => by !== 'address' || meter !== undefined,
      )
      const admitAnonymous: MiddlewareHandler = admit({ ...options, limits: limits ?? [] })
      return async function admitEither(c: BrowserContext, next) {
        const hasSession = readSession(receivedHeaders(c)) !== undefined
        try {
          await admitCaller(c, next)
        } catch (error) {
          if (!hasSession || !(error instanceof Denied) || !endOfSession(error.denial)) throw error
          observe(c, reasonOfDenial(error.denial))
          c.set('portcullis.pending', NO_CREDENTIAL)
          c.set('portcullis.principal', null)
          await admitAnonymous(c, next)
        }
      }
    },
    admitted: [forgetOtherHost, ...admitted],
  }
}

const NO_CREDENTIAL = {
  reference: undefined,
  proof: undefined,
  check: undefined,
  identified() {},
}

/** Reports whether a session is of the host of the request, and the route is of that host. */
const isUsable = (
  { host }: SignInFacts,
  url: string,
  hosts: Hosts,
  routeHost: string | undefined,
): boolean => host === hosts.otherOf(url) && (host === undefined || routeHost !== undefined)

/** Returns which pages may send a request with an unsafe method to the host of a URL. */
export const pagesOf = (url: string, hosts: Hosts): Pages => ({
  ownOrigin: hosts.ownOriginOf(url),
  others: [],
  acceptsOtherClients: false,
})

const signInRequired = (check: Check<'sign_in_required'>) =>
  new Denied({ code: 'sign_in_required', check })

/** Returns why the session of a request is not valid. Undefined: the refusal has another cause. */
function endOfSession(denial: Denial): Check<'sign_in_required'> | undefined {
  if (denial.code === 'token_rejected') return `${denial.code}:${denial.check}`
  return denial.code === 'token_revoked' ? `${denial.code}:${denial.by}` : undefined
}

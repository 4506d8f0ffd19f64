/** Sign-in with a browser: `import { signIn } from 'portcullis/sign-in'`. */

import type { Principal } from '../../access/principal.ts'
import { createRevocations } from '../../access/revocation/redis/revocations.ts'
import { clientKeyChecks } from '../../access/tokens/issuer-client-authentication.ts'
import { Denied, Misconfigured, Unavailable } from '../../errors.ts'
import type { Contribution, Feature, FeatureParts, GuardParts } from '../../gateway/feature.ts'
import { admit } from '../../middleware/admit.ts'
import type { RouteDefinition } from '../../policy/definition.ts'
import type { PolicyLimit } from '../../policy/policy.ts'
import { type Mistake, mistakeAt, withPath } from '../../problems/mistake.ts'
import { issuesOf, mistakeOf, parseConfiguration } from '../../validators/configuration.ts'
import { type IssuerConfig, idTokenAlgorithmOf } from '../../validators/issuer.ts'
import { issuerClientsOf, issuerClientVariables } from '../../validators/issuer-client.ts'
import { browserSession, optionalSession } from './browser-session.ts'
import { callbackNameOf } from './callback.ts'
import { readClientSettings } from './client-settings.ts'
import { CONTACT_OBSERVER } from './contacts.ts'
import {
  DEFAULT_REQUESTS_PER_MINUTE,
  PROVIDER_REQUESTS_PER_MINUTE,
  type SignInDefinition,
} from './definition.ts'
import { createGitHub } from './github.ts'
import { createHandOvers } from './hand-over.ts'
import { createHosts } from './hosts.ts'
import { keylessIssuers } from './keyless-issuers.ts'
import { createLogins, LOGIN_COOKIE_PREFIX } from './login.ts'
import { ownCookies } from './own-cookies.ts'
import { refusedNavigations } from './pages/refused-navigations.ts'
import { signInRoutes } from './pages/routes.ts'
import { signInOperations } from './pages/sessions-view.ts'
import { createProvider, type Provider } from './provider.ts'
import { createProviderSessions } from './provider-sessions.ts'
import { createSessionStore } from './redis/session-store.ts'
import { ENGLISH } from './rendering/english.ts'
import { reportMissing } from './rendering/language.ts'
import { createPages } from './rendering/page.ts'
import { RESERVED_PATHS, SIGNED_OUT_PATH } from './return-path.ts'
import { sessionDemandSchema, signInSchema } from './schema.ts'
import { SESSION_COOKIE } from './session.ts'
import { createSessionReader } from './session-reader.ts'
import { createSessions, type SessionTerms } from './sessions.ts'
import { SESSION_STAGES, SIGNED_IN } from './signed-in.ts'
import { createSignedInUsers } from './signed-in-user.ts'

export type { SignInDefinition } from './definition.ts'
export type { PageLanguage } from './rendering/language.ts'

/**
 * Returns the sign-in with a browser, for the policy's `features`: `/oauth/sign-in`,
 * `/oauth/callback`, `/oauth/sign-out`, and sessions for routes with `session: 'browser'`. Users sign
 * in at the issuers whose entry in `ISSUER_CLIENTS` has `signIn`.
 *
 * @example
 * ```ts
 * export default definePolicy({
 *   features: [signIn({ roles: ['reader'] })],
 *   routes: [{ method: 'GET', path: '/orders', permission: 'orders:read', session: 'browser' }],
 *   // …
 * })
 * ```
 */
export function signIn(definition: SignInDefinition = {}): Feature {
  parseConfiguration('The policy', signInSchema, definition, ['signIn()'])
  return {
    name: 'signIn',
    presence: 'more',
    settings: {
      ...DEFAULT_TERMS,
      requestsPerMinute: DEFAULT_REQUESTS_PER_MINUTE,
      ...definition,
    },
    effects: {
      idleSeconds: 'more',
      absoluteSeconds: 'more',
      maxSessions: 'more',
      roles: 'more',
      requestsPerMinute: 'more',
      theme: 'none',
      branding: 'none',
    },
    variables: issuerClientVariables,
    keylessIssuers,
    sessionSeconds: definition.absoluteSeconds ?? DEFAULT_TERMS.absoluteSeconds,
    mistakesIn,
    rehearse,
    create: (parts) => createContribution(definition, parts),
  }
}

/** The stages of routes with sessions. There are no pages, and sessions are not renewed. */
function rehearse({ core: { publicUrl, now }, policy }: GuardParts): Contribution {
  const hosts = createHosts(policy.routes, publicUrl)
  return {
    stagesOf: ({ session, host: routeHost, authentication: demand }, { references }) =>
      session &&
      stagesFor(session)({ references, renewal: undefined, hosts, routeHost, demand, now }),
    cookies: [SESSION_COOKIE],
  }
}

const stagesFor = (session: 'browser' | 'optional') =>
  session === 'optional' ? optionalSession : browserSession

function createContribution(definition: SignInDefinition, parts: FeatureParts): Contribution {
  const { config, redis, admission, references, now } = parts
  const { publicUrl } = config
  const {
    requestsPerMinute = DEFAULT_REQUESTS_PER_MINUTE,
    theme = {},
    branding,
    ...chosen
  } = definition
  const createLimit = (name: string, limit: number): PolicyLimit => ({
    name,
    limit,
    windowSeconds: 60,
    by: 'address',
    onUnavailable: 'deny',
  })
  const ofBrowsers = createLimit('sign_in', requestsPerMinute)
  const ofProviders = createLimit('provider_logout', PROVIDER_REQUESTS_PER_MINUTE)
  const providers = createProviders(parts)
  const hosts = createHosts(parts.policy.routes, publicUrl)
  const store = createSessionStore(redis, now)
  const revocations = createRevocations(redis, now)
  const terms = { ...DEFAULT_TERMS, ...chosen }
  const sessions = createSessions({
    store,
    revocations,
    terms,
    audience: publicUrl,
    now,
  })
  const providerSessions = createProviderSessions({
    store,
    sessions,
    revocations,
    terms,
    now,
  })
  /** A session outlives an outage of its provider. */
  async function refresh(principal: Principal): Promise<void> {
    const provider = providers.find(({ issuer }) => issuer === principal.tokenIssuer)
    try {
      if (provider !== undefined) await providerSessions.refresh(principal, provider)
    } catch (error) {
      if (!(error instanceof Unavailable) && !(error instanceof Denied)) throw error
    }
  }
  const readUser = createSessionReader({ admission, references, hosts })
  const renderPage = createPages(theme, branding)
  reportMissing(branding?.languages ?? [], 'signIn', ENGLISH)
  const cookies = [SESSION_COOKIE, `${LOGIN_COOKIE_PREFIX}*`]
  async function open(...login: Parameters<typeof sessions.open>): Promise<string> {
    const [{ principal, contacts = {} }] = login
    await CONTACT_OBSERVER.of(parts)?.(principal, contacts)
    return sessions.open(...login)
  }
  const routes = signInRoutes({
    providers,
    logins: createLogins({ providers, store }),
    sessions: { ...sessions, open },
    providerSessions,
    readUser,
    renderPage,
    admitBrowser: admit({ admission, limits: [ofBrowsers], now }),
    admitProvider: admit({ admission, limits: [ofProviders], now }),
    limits: [ofBrowsers, ofProviders],
    hosts,
    publicUrl,
    handOvers: createHandOvers({ hosts, publicUrl, store }),
    reportedPlaceOf: parts.reportedPlaceOf,
    now,
  })
  const keepCookies = ownCookies({ names: cookies })
  const renewal = { sessions, refresh }
  SIGNED_IN.offer(parts, {
    users: createSignedInUsers({ readUser, now }),
    renderPage,
    languages: branding?.languages,
    otherHostOf: hosts.otherOf,
    // A login takes two requests.
    loginsPerMinute: Math.ceil(requestsPerMinute / 2),
  })
  SESSION_STAGES.offer(parts, (options) =>
    browserSession({ ...options, references, renewal, hosts, now }),
  )
  return {
    apps: () => [{ at: '/', app: routes }],
    checks: clientKeyChecks(
      issuerClientsOf(config).filter(({ signIn }) => signIn !== undefined),
      now,
      'identity_provider',
    ),
    around: [refusedNavigations({ renderPage })],
    operations: signInOperations,
    cookies,
    stagesOf: ({ session, host: routeHost, authentication: demand }, { references, explains }) => ({
      ...(session &&
        stagesFor(session)({
          references,
          renewal: explains ? undefined : renewal,
          hosts,
          routeHost,
          demand,
          now,
        })),
      response: [keepCookies],
    }),
  }
}

/** Throws `Misconfigured` if no entry of `ISSUER_CLIENTS` has a valid `signIn`. */
function createProviders({ config, watch, now }: FeatureParts): readonly Provider[] {
  const { publicUrl } = config
  const signedOutUri = publicUrl + SIGNED_OUT_PATH
  const entries = issuerClientsOf(config).flatMap((client, index) => {
    const issuer = config.issuers.find((one) => one.issuer === client.issuer)
    if (client.signIn === undefined || issuer === undefined) return []
    return [{ client, settings: readClientSettings(client, issuer, index), issuer }]
  })
  for (const { issuer, settings } of entries)
    if (settings.preset === undefined) reportAlgorithm(issuer)
  const names = entries.map(({ issuer: { issuer } }) => callbackNameOf(issuer))
  if (new Set(names).size < names.length)
    throw new Misconfigured('The environment', [
      mistakeAt(
        'duplicate',
        ['ISSUER_CLIENTS'],
        'two issuers with signIn have the same callback path; use issuers that differ in letters or digits',
      ),
    ])
  const isOnly = entries.length === 1
  if (entries.length > 0)
    return entries.map((entry) => {
      const create = entry.settings.preset === 'github' ? createGitHub : createProvider
      return create({ ...entry, publicUrl, isOnly, signedOutUri, watch, now })
    })
  throw new Misconfigured('The environment', [
    mistakeAt('missing', ['ISSUER_CLIENTS'], 'no client has signIn, but the policy has signIn()'),
  ])
}

/** Names the one algorithm of ID tokens, where access tokens may have others and no setting selects it. */
function reportAlgorithm(config: IssuerConfig): void {
  const { issuer, algorithms, idTokenAlgorithm } = config
  if (idTokenAlgorithm !== undefined || algorithms.length === 1) return
  console.warn(
    `sign-in: ${issuer} must sign ID tokens and logout tokens with ${idTokenAlgorithmOf(config)}; ` +
      'otherwise set idTokenAlgorithm in its entry of ISSUERS',
  )
}

/** Yields the mistakes of routes with sessions, and of routes with the paths of the sign-in. */
function* mistakesIn(routes: readonly RouteDefinition[]): Generator<Mistake> {
  for (const [index, route] of routes.entries())
    for (const mistake of mistakesInRoute(route))
      yield {
        ...mistake,
        path: [index, ...mistake.path],
        route: { method: route.method, path: route.path },
      }
}

function* mistakesInRoute(route: RouteDefinition): Generator<Mistake> {
  if (RESERVED_PATHS.includes(route.path))
    yield {
      code: 'reserved_path',
      path: ['path'],
      message: 'this path is reserved for the sign-in',
    }
  if (route.session === undefined) return
  if (route.session === 'optional') {
    if (!route.anonymous)
      yield {
        code: 'conflict',
        path: ['session'],
        message: "'optional' requires anonymous: true; otherwise set session: 'browser'",
      }
    return
  }
  for (const issue of issuesOf(sessionDemandSchema, route.session))
    yield withPath(mistakeOf(issue, ['session']))
  if (route.dpop || route.anonymous || route.mcp)
    yield {
      code: 'conflict',
      path: ['session'],
      message: 'session cannot be combined with dpop, anonymous or mcp',
    }
}

export const DEFAULT_TERMS: SessionTerms = {
  idleSeconds: 1_800,
  absoluteSeconds: 43_200,
  maxSessions: 10,
  roles: [],
}

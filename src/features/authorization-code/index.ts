/** The authorization endpoint: `import { authorizationCode } from 'portcullis/authorization-code'`. */

import * as z from 'zod/mini'
import { createScopeOfRoles } from '../../access/permissions.ts'
import { createRevocations } from '../../access/revocation/redis/revocations.ts'
import { issuerFor } from '../../access/tokens/issuer-uses.ts'
import { createTokenVerifier } from '../../access/tokens/verifier.ts'
import { Misconfigured } from '../../errors.ts'
import type { Feature, FeatureParts } from '../../gateway/feature.ts'
import { admit } from '../../middleware/admit.ts'
import type { PolicyLimit } from '../../policy/route.ts'
import { permissionsOfRoute } from '../../policy/route-permissions.ts'
import { type Mistake, mistakeAt } from '../../problems/mistake.ts'
import { anyOrigin } from '../../routes/any-origin.ts'
import { parseConfiguration } from '../../validators/configuration.ts'
import { CODE_FLOW, type CodeFlow } from '../authorization-server/code-flow.ts'
import {
  AUTHORIZE_PATH,
  PUSHED_REQUEST_PATH,
  REGISTRATION_PATH,
} from '../authorization-server/metadata.ts'
import { createClientRegistry } from '../authorization-server/redis/clients.ts'
import {
  type ConfiguredClient,
  clientsOf,
  type SecurityProfile,
} from '../authorization-server/schemas/client.ts'
import { clientAgreement } from '../authorization-server/schemas/new-client.ts'
import { DEFAULT_REQUESTS_PER_MINUTE } from '../sign-in/definition.ts'
import { mistakesInTexts, type PageLanguage, reportMissing } from '../sign-in/rendering/language.ts'
import { SIGNED_IN } from '../sign-in/signed-in.ts'
import { createAuthorizationEndpoint } from './authorization-endpoint.ts'
import { authorizationCodeGrant } from './code-grant.ts'
import { consentCalls } from './consent-calls.ts'
import {
  type AuthorizationCodeDefinition,
  DEFAULT_REGISTRATION,
  DEFAULT_SESSION_SECONDS,
} from './definition.ts'
import { identityAssertionGrant, JWT_BEARER_GRANT } from './identity-assertion-grant.ts'
import { codeFlowMetadata } from './metadata.ts'
import { createOffer } from './offer.ts'
import { codeFlowOperations } from './operations.ts'
import { createPushedRequestEndpoint } from './pushed-request.ts'
import { createAuthorizationCodes } from './redis/authorization-codes.ts'
import { createConsents } from './redis/consents.ts'
import { createRegisteredClients } from './redis/registered-clients.ts'
import { createWaitingRequests } from './redis/waiting-requests.ts'
import { createClientDocuments } from './registration/client-documents.ts'
import { createClientDirectory, createPublicClients } from './registration/directory.ts'
import { createRegistrationEndpoint } from './registration/registration-endpoint.ts'
import { authorizeRoutes } from './routes/authorize.ts'
import { DESCRIPTIONS } from './routes/descriptions.ts'
import { ENGLISH } from './routes/english.ts'
import { registrationRoutes } from './routes/register.ts'
import { authorizationCodeSchema } from './schema.ts'
import { createWithdrawal, type Withdrawal } from './withdrawal.ts'

export type {
  AuthorizationCodeDefinition,
  DocumentsDefinition,
  RegistrationDefinition,
} from './definition.ts'

const configuredAgreement = z.array(z.custom<ConfiguredClient>().check(clientAgreement))

/** Requests of an address to the pages. Each may call Redis several times. */
const PAGES_LIMIT: PolicyLimit = {
  name: 'authorize',
  limit: 300,
  windowSeconds: 60,
  by: 'address',
  onUnavailable: 'deny',
}

/**
 * Returns the authorization code flow for public clients such as agents that speak MCP, for the
 * policy's `features`: `/oauth/authorize` with a consent page, `/oauth/par`, and the grant
 * `authorization_code`. Needs `authorizationServer()`, `signIn()` and `SIGNING_KEYS`.
 *
 * @example
 * ```ts
 * features: [
 *   authorizationServer(),
 *   signIn(),
 *   authorizationCode({ scopes: { 'books:read': 'Search the books' } }),
 * ]
 * ```
 */
export function authorizationCode(definition: AuthorizationCodeDefinition = {}): Feature {
  parseConfiguration('The policy', authorizationCodeSchema, definition, ['authorizationCode()'])
  const { sessionSeconds = DEFAULT_SESSION_SECONDS } = definition
  return {
    name: 'authorizationCode',
    presence: 'more',
    settings: {
      documents: {},
      ...definition,
      sessionSeconds,
      registration: termsOf(definition.registration),
    },
    effects: {
      scopes: 'none',
      sessionSeconds: 'more',
      redirectSchemes: 'more',
      documents: 'more',
      'documents.allow': 'bound',
      'documents.deny': 'less',
      'documents.loopback': 'more',
      identityAssertions: 'more',
      registration: 'more',
      'registration.perAddress': 'more',
      'registration.unusedSeconds': 'more',
    },
    requires: ['authorizationServer', 'signIn'],
    sessionSeconds,
    create(parts) {
      refuseIncomplete(parts)
      CODE_FLOW.offer(parts, (profile) => {
        refuseUnusable(definition, profile)
        return createCodeFlow({ ...definition, sessionSeconds }, parts, profile)
      })
      return {
        operations: () => codeFlowOperations(Boolean(definition.registration)),
        operatorCalls: [consentCalls(withdrawalOf(parts))],
      }
    },
  }
}

/** Returns the terms with which clients register themselves. False: they cannot. */
const termsOf = (registration: AuthorizationCodeDefinition['registration'] = false) =>
  registration !== false && {
    ...DEFAULT_REGISTRATION,
    ...(registration === true ? {} : registration),
  }

/** Throws `Misconfigured` without what the flow needs. */
function refuseIncomplete({ config }: FeatureParts): void {
  if (config.signingKeys === undefined)
    throw new Misconfigured('The environment', [
      mistakeAt(
        'missing',
        ['SIGNING_KEYS'],
        'is missing; authorizationCode() issues tokens with it',
      ),
    ])
  // Here, because only this feature uses these members.
  parseConfiguration('The environment', configuredAgreement, clientsOf(config), ['CLIENTS'])
}

/** Throws `Misconfigured` for ways to become a client that the profile of the server never lets log in. */
function refuseUnusable(
  { registration, documents }: AuthorizationCodeDefinition,
  profile: SecurityProfile | undefined,
): void {
  if (profile === undefined) return
  const mistakes = Object.entries({ registration, documents }).flatMap(([field, value]) =>
    value === undefined || value === false
      ? []
      : mistakeAt(
          'conflict',
          ['features', 'authorizationCode', field],
          `such clients have no key, so the profile ${profile} refuses them`,
        ),
  )
  if (mistakes.length > 0) throw new Misconfigured('The policy', mistakes)
}

function createCodeFlow(
  definition: AuthorizationCodeDefinition & { readonly sessionSeconds: number },
  parts: FeatureParts,
  profile: SecurityProfile | undefined,
): CodeFlow {
  const { config, policy, redis, authorizer, fetchPublic, now } = parts
  const { publicUrl } = config
  const configured = clientsOf(config)
  const { sessionSeconds, scopes: words = {}, redirectSchemes: schemes = [] } = definition
  // Such clients have no key. Under a profile, none of them could ever log in.
  const { documents: documented = profile === undefined && {} } = definition
  const terms = termsOf(definition.registration)
  const consents = createConsents(redis, now)
  const withdrawal = withdrawalOf(parts)
  const codes = createAuthorizationCodes(redis, now)
  const waiting = createWaitingRequests(redis)
  // Without registration, clients that registered themselves before are unknown.
  const registered = terms === false ? undefined : createRegisteredClients(redis)
  const documents =
    documented === false
      ? undefined
      : createClientDocuments({ hosts: documented, schemes, publicUrl, fetch: fetchPublic, now })
  const registry = createClientRegistry({ redis, configured, publicUrl, now })
  const directory = createClientDirectory({ registry, registered, documents })
  const offer = createOffer({
    routes: policy.routes.map((route) => ({
      path: route.path,
      host: route.host,
      permissions: permissionsOfRoute(route),
    })),
    issuer: publicUrl,
    authorizer,
    scopeOfRoles: createScopeOfRoles(policy.roles),
  })
  const assertions = createAssertionVerifier(definition.identityAssertions, parts)
  return {
    forPages: anyOrigin,
    descriptions: DESCRIPTIONS,
    publicClients: createPublicClients({ registered, documents }),
    grants: (options) => ({
      authorization_code: authorizationCodeGrant(options, codes),
      ...(assertions && {
        [JWT_BEARER_GRANT]: identityAssertionGrant(options, { assertions, offer }),
      }),
    }),
    metadata: codeFlowMetadata({
      issuer: publicUrl,
      authorizationPath: AUTHORIZE_PATH,
      pushedPath: PUSHED_REQUEST_PATH,
      registrationPath: registered && REGISTRATION_PATH,
      acceptsDocuments: documents !== undefined,
      scopes: offer.scopes,
      acceptsAssertions: assertions !== undefined,
      acceptsPublic: profile === undefined,
    }),
    endpoints(options, authenticate) {
      const { store } = options
      const signedIn = requireSignIn(parts)
      const { users, renderPage, languages = [], otherHostOf = () => undefined } = signedIn
      const { loginsPerMinute = DEFAULT_REQUESTS_PER_MINUTE / 2 } = signedIn
      checkLanguages(languages)
      const endpoint = createAuthorizationEndpoint({
        ...options,
        directory,
        registered,
        codes,
        consents,
        withdrawal,
        waiting,
        offer,
        sessionSeconds,
        loginsPerMinute,
      })
      const push = createPushedRequestEndpoint({
        ...options,
        authenticate,
        endpoint,
        offer,
        waiting,
      })
      const pages = authorizeRoutes({
        endpoint,
        withdrawal,
        users,
        renderPage,
        otherHostOf,
        admitAddress: admit({ admission: parts.admission, limits: [PAGES_LIMIT], now }),
        limit: PAGES_LIMIT,
        publicUrl,
        words,
        schemes,
        now,
      })
      const register =
        terms === false || registered === undefined
          ? undefined
          : createRegistrationEndpoint({ ...terms, store, registered, publicUrl, schemes, now })
      return {
        forms: [{ path: PUSHED_REQUEST_PATH, handle: push, status: 201 }],
        apps: register === undefined ? [pages] : [pages, registrationRoutes(register)],
      }
    },
  }
}

/** Throws `Misconfigured` for texts that no page has, or that lack a slot. Reports missing ones. */
function checkLanguages(languages: readonly PageLanguage[]): void {
  const mistakes = languages.flatMap(({ tag, texts }) =>
    [...mistakesInTexts(texts.authorizationCode ?? {}, ENGLISH)].map(([name, message]) =>
      mistakeAt(
        'invalid_value',
        ['features', 'signIn', 'branding', 'languages', tag, 'authorizationCode', name],
        message,
      ),
    ),
  )
  if (mistakes.length > 0) throw new Misconfigured('The policy', mistakes)
  reportMissing(languages, 'authorizationCode', ENGLISH)
}

/** Throws `Misconfigured` for an issuer that the environment does not have. */
function createAssertionVerifier(
  names: readonly string[] | undefined,
  { config, watch, now }: FeatureParts,
) {
  if (names === undefined) return undefined
  const found = names.map((name) => config.issuers.find(({ issuer }) => issuer === name))
  const mistakes = names
    .filter((_, index) => found[index] === undefined || found[index].keySet === 'none')
    .map(
      (name): Mistake => ({
        code: 'missing',
        path: ['features'],
        message: `authorizationCode(): identityAssertions: ${name} is not an issuer of ISSUERS that issues JWTs`,
      }),
    )
  if (mistakes.length > 0) throw new Misconfigured('The policy', mistakes)
  const issuers = found.flatMap((issuer) =>
    issuer === undefined
      ? []
      : [issuerFor(issuer, { use: 'assertion', audience: config.publicUrl })],
  )
  // Each is used once, so that none is cached.
  return createTokenVerifier({ issuers, maxCachedBytes: 0, keySets: { watch }, now })
}

function withdrawalOf({ config: { publicUrl: issuer }, redis, now }: FeatureParts): Withdrawal {
  const consents = createConsents(redis, now)
  return createWithdrawal({ consents, revoker: createRevocations(redis, now), issuer, now })
}

function requireSignIn(parts: FeatureParts) {
  const offered = SIGNED_IN.of(parts)
  // `requires` names signIn().
  if (offered === undefined) throw new Error('authorizationCode(): signIn() is missing')
  return offered
}

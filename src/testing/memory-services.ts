/** The services of a gateway without Redis, queue and network. `gateway/` composes the real ones. */

import { type AbuseServices, createAbuseServices } from '../access/abuse/services.ts'
import { createAdmission } from '../access/admission/admission.ts'
import { createAuthorizer } from '../access/permissions.ts'
import { createRelationChecker, type RelationChecker } from '../access/relations/checker.ts'
import type { RelationQuery } from '../access/relations/decision-point.ts'
import { createDpopVerifier } from '../access/tokens/dpop.ts'
import { createReferences, type References } from '../access/tokens/references.ts'
import { createTokenSources } from '../access/tokens/token-sources.ts'
import { createTokenVerifier } from '../access/tokens/verifier.ts'
import type { AuditSink } from '../audit/event.ts'
import type { Services } from '../gateway/compose-services.ts'
import { connectOrigins, present } from '../gateway/compose-services.ts'
import type { Connections, Core } from '../gateway/core.ts'
import { listFeatures } from '../gateway/feature.ts'
import { publicOrigins } from '../http/public-origin.ts'
import { createBreakers } from '../isolate/breakers.ts'
import { connectingAddress } from '../middleware/client-address.ts'
import { guardedOrigin } from '../origin/guarded-origin.ts'
import { createOrigin, type Fetches } from '../origin/origin.ts'
import type { Policy } from '../policy/policy.ts'
import { issuers as issuersSchema } from '../validators/issuer.ts'
import type { TokenSource } from '../validators/token-source.ts'
import type { IssuerEntry } from './issuer.ts'
import { createMemoryFailureCounter, createMemoryViolationCounter } from './memory-counters.ts'
import type { MemoryStore } from './memory-store.ts'

/** In place of a signing key. */
const NONCE_SECRET = 'nonces of tests'

export interface MemoryServicesOptions {
  readonly policy: Policy
  readonly publicUrl: string
  readonly issuers: readonly IssuerEntry[]
  /** Of the issuers. Default `Authorization`. */
  readonly tokenSources?: readonly TokenSource[] | undefined
  readonly store: MemoryStore
  readonly auditSink: AuditSink
  readonly origin: Fetches
  /** Decides relations in place of the policy decision point. */
  readonly hasRelation: (query: RelationQuery) => boolean
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

/**
 * Creates the services that the routes of the policy need, with the defaults of the gateway. Every
 * request consults the store, whatever `revocation.maxStalenessMs` allows. The gateway has no signing
 * keys: the origin gets no assertion. Routes of opt-in features do not exist. Routes
 * with browser sessions have their stages, and there is no session.
 */
export function memoryServices(options: MemoryServicesOptions): Services {
  const { policy, publicUrl, auditSink, origin, now, tokenSources } = options
  const { identityHeaders } = policy
  const issuers = issuersSchema
    .parse(options.issuers.map((entry) => ({ ...entry, tokenSources })))
    .map((issuer) => ({ ...issuer, identityHeaders }))
  const breakers = createBreakers({ now, alarm: () => {} })
  const originOfUrl = publicOrigins(publicUrl)
  const references = createReferences({ audience: publicUrl, now })
  const connect: Connections['connect'] = ({ url }, options) =>
    guardedOrigin({
      origin: createOrigin({ url, binding: origin }),
      watch: breakers.watch,
      now,
      ...options,
    })
  const connectDefault: Connections['connectDefault'] = () => ({
    origin: connect({}),
    assertions: undefined,
  })
  const environment = {}
  const connections = { environment, connect, assertionsFor: () => undefined, connectDefault }
  const core: Core = {
    publicUrl,
    publicOriginOf: (c) => originOfUrl(c.req.raw.url),
    addressOf: connectingAddress,
    issuers: issuers.map(({ issuer }) => issuer),
    tokenIssuers: issuers.map(({ issuer }) => issuer),
    publicKeys: () => ({ keys: [] }),
    verifier: createTokenVerifier({ issuers, now }),
    sources: createTokenSources({ issuers, own: { publicUrl, sources: policy.tokens.sources } }),
    references,
    proofs: createDpopVerifier({
      publicUrl,
      nonceSecret: policy.tokens.dpopNonceRequired ? NONCE_SECRET : undefined,
      nonceRequired: policy.tokens.dpopNonceRequired,
      now,
    }),
    ...statefulServices(options, references),
    authorizer: createAuthorizer(policy.roles),
    relations: createRelations(options),
    auditSink,
    // Binds sessions of MCP servers.
    sharedSecret: 'secret of policy tests',
    breakers,
    metrics: { text: async () => '', metricsAccess: 'operators' },
    checks: [],
    now,
  }
  const parts = { core, policy, environment }
  const contributions = listFeatures(policy).flatMap((feature) => [
    ...present(feature.guard?.(parts)),
    ...present(feature.rehearse?.(parts)),
  ])
  return { ...core, ...connectOrigins(contributions, connections), contributions }
}

/** The services that decide by earlier requests. */
type StatefulServices = AbuseServices & Pick<Services, 'admission'>

/**
 * Creates the services that decide by earlier requests: they have seen none. `max` bounds each of
 * their caches, default 10,000 entries: large ones take longer to create than a request.
 */
export function statefulServices(
  { policy: { abuse }, store, now }: Pick<MemoryServicesOptions, 'policy' | 'store' | 'now'>,
  references: References,
  max?: number,
): StatefulServices {
  return {
    admission: createAdmission({
      store: store.admission,
      references,
      observesBans: abuse.bans?.mode === 'observe',
      cacheSize: max,
      now,
    }),
    ...createAbuseServices(
      abuse,
      {
        failures: createMemoryFailureCounter(now),
        violations: createMemoryViolationCounter(store.bans, now),
      },
      now,
      max,
    ),
  }
}

/**
 * Returns services whose memory of requests can be exchanged while a gateway uses them. So the pipeline is
 * built once for many tests. Circuit breakers of origins are not exchanged.
 */
export function exchangeable(services: Services) {
  let present: StatefulServices = services
  const { failures, violations } = services
  const delegating: Services = {
    ...services,
    admission: {
      admit: (request) => present.admission.admit(request),
      admitReference: (request) => present.admission.admitReference(request),
      recheck: (callers) => present.admission.recheck(callers),
    },
    failures: failures && {
      mode: failures.mode,
      begin: (address) => present.failures?.begin(address),
      waitSeconds: (address) => present.failures?.waitSeconds(address),
      waitSecondsOf: (address, signerOf) => present.failures?.waitSecondsOf(address, signerOf),
      record: (address, waitUntil, signer) => present.failures?.record(address, waitUntil, signer),
    },
    violations: violations && {
      mode: violations.mode,
      refuses: violations.refuses,
      record: (violation, waitUntil) => present.violations?.record(violation, waitUntil),
      banSeconds: (address, of, waitUntil) =>
        present.violations?.banSeconds(address, of, waitUntil),
      learn: (address, seconds) => present.violations?.learn(address, seconds),
    },
  }
  return {
    services: delegating,
    exchange(next: StatefulServices): void {
      present = next
    },
  }
}

function createRelations({
  policy: { relations },
  publicUrl,
  hasRelation,
  now,
}: MemoryServicesOptions): RelationChecker | undefined {
  if (relations === undefined) return undefined
  return createRelationChecker({
    decisionPoint: {
      check: async (query) => ({
        decision: { outcome: hasRelation(query) ? 'allowed' : 'denied' },
        version: 0,
      }),
    },
    // The gateway's own callers have API keys.
    issuers: relations.issuers && new Set([publicUrl, ...relations.issuers]),
    now,
  })
}

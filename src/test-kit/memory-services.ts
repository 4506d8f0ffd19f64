/** The services of a gateway without Redis, queue and network. `gateway/` composes the real ones. */
import { createAbuseServices } from '../abuse/services.ts'
import { createAdmission } from '../admission/admission.ts'
import type { AuditSink } from '../audit/event.ts'
import { createAuthorizer } from '../authorization/permissions.ts'
import type { Services } from '../gateway/compose-services.ts'
import { type OriginParts, originsOf } from '../gateway/features.ts'
import { createBreakers } from '../isolate/breakers.ts'
import { guardedOrigin } from '../origin/guarded-origin.ts'
import { createOrigin, type Fetches } from '../origin/origin.ts'
import type { Policy } from '../policy/policy.ts'
import { createRelationChecker, type RelationChecker } from '../relations/checker.ts'
import type { RelationQuery } from '../relations/decision-point.ts'
import { createDpopVerifier, nonceSecretOf } from '../tokens/dpop.ts'
import { createReferences } from '../tokens/references.ts'
import { createTokenSources } from '../tokens/token-sources.ts'
import { createTokenVerifier } from '../tokens/verifier.ts'
import { issuers as issuersSchema } from '../validators/issuer.ts'
import type { TokenSource } from '../validators/token-source.ts'
import type { IssuerEntry } from './issuer.ts'
import { createMemoryFailureCounter, createMemoryViolationCounter } from './memory-counters.ts'
import type { MemoryStore } from './memory-store.ts'

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
 * keys: the origin gets no assertion. Routes of opt-in features do not exist.
 */
export function memoryServices(options: MemoryServicesOptions): Services {
  const { policy, publicUrl, store, auditSink, origin, now, tokenSources } = options
  const issuers = issuersSchema.parse(options.issuers.map((entry) => ({ ...entry, tokenSources })))
  const breakers = createBreakers({ now, alarm: () => {} })
  const references = createReferences({ audience: publicUrl, now })
  const connect: OriginParts['connect'] = ({ url }, options) =>
    guardedOrigin({
      origin: createOrigin({ url, binding: origin }),
      watch: breakers.watch,
      now,
      ...options,
    })
  const unnamed: OriginParts['unnamed'] = () => ({ origin: connect({}), assertions: undefined })
  const forOrigins = { environment: {}, connect, assertionsFor: () => undefined, unnamed }
  return {
    publicUrl,
    issuers: issuers.map(({ issuer }) => issuer),
    publicKeys: () => ({ keys: [] }),
    verifier: createTokenVerifier({ issuers, now }),
    sources: createTokenSources({ issuers, own: { publicUrl, sources: policy.tokens.sources } }),
    references,
    proofs: createDpopVerifier({
      publicUrl,
      nonceSecret: nonceSecretOf([]),
      nonceRequired: policy.tokens.dpopNonceRequired,
      now,
    }),
    admission: createAdmission({
      store: store.admission,
      references,
      observesBans: policy.abuse.bans?.mode === 'observe',
      now,
    }),
    authorizer: createAuthorizer(policy.roles),
    relations: relationsOf(options),
    ...createAbuseServices(
      policy.abuse,
      {
        failures: createMemoryFailureCounter(now),
        violations: createMemoryViolationCounter(store.bans, now),
      },
      now,
    ),
    auditSink,
    ...(originsOf(policy)?.services(forOrigins, policy.routes) ?? unnamed()),
    breakers,
    metrics: { text: async () => '', metricsAccess: 'operators' },
    checks: [],
    now,
  }
}

function relationsOf({
  policy: { relations },
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
    issuers: relations.issuers && new Set(relations.issuers),
    now,
  })
}

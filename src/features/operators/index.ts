/** The operators' API: `import { operators } from 'portcullis/operators'`. */

import * as z from 'zod/mini'
import { createBanList } from '../../access/abuse/redis/bans.ts'
import {
  createLimitControls,
  createOverrideList,
} from '../../access/admission/redis/limit-overrides.ts'
import { createRedisAdmissionStore } from '../../access/admission/redis/store.ts'
import { createRevocationLog } from '../../access/revocation/redis/revocation-log.ts'
import { createRevocations } from '../../access/revocation/redis/revocations.ts'
import { createApiKeys } from '../../access/tokens/redis/api-keys.ts'
import { createReferenceStore } from '../../access/tokens/redis/references.ts'
import { createTokenIssuer } from '../../access/tokens/token-issuer.ts'
import { createOverflowRedaction } from '../../audit/redis/overflow.ts'
import { createAuditLog } from '../../audit/sql/audit-events.ts'
import { createChainLog } from '../../audit/sql/chain-log.ts'
import { trailOf } from '../../audit/sql/d1/database.ts'
import { createErasureOrders } from '../../audit/sql/erasure-orders.ts'
import { createAuditUsage } from '../../audit/sql/usage.ts'
import { createExplainer } from '../../gateway/explainer.ts'
import { type Feature, type FeatureParts, listFeatures } from '../../gateway/feature.ts'
import { longestLifeSeconds } from '../../gateway/longest-life.ts'
import { listTenantIssuers } from '../../gateway/tenant-issuers.ts'
import { createReadmission } from '../../middleware/readmit.ts'
import { OPERATORS_LIMIT } from '../../policy/route.ts'
import type { AdminCall } from '../../routes/admin/call.ts'
import { OPERATOR_PERMISSIONS } from '../../routes/admin/permissions.ts'
import { parseConfiguration } from '../../validators/configuration.ts'
import { DEFAULT_SCOPE_USE } from '../../validators/issuer.ts'
import { wholeNumber } from '../../validators/schema-parts.ts'
import { SERVER_PROFILE } from '../authorization-server/client.ts'
import { createClientRegistry } from '../authorization-server/redis/clients.ts'
import { createGrantStore } from '../authorization-server/redis/grant-store.ts'
import { clientsOf, clientVariables } from '../authorization-server/schemas/client.ts'
import { createKeyPlanReader, createPlanAssignments } from '../plans/redis/assignments.ts'
import { apiKeyCalls } from './api-keys.ts'
import { banCalls } from './bans.ts'
import { clientCalls } from './clients.ts'
import type { AdminContext } from './context.ts'
import { explanationCalls } from './explanations.ts'
import { limitCalls } from './limits.ts'
import { DEMAND_EFFECTS, type PeopleDefinition, peopleOf, peopleSchema } from './people.ts'
import { planCalls } from './plans.ts'
import { recordCalls } from './records.ts'
import { revocationCalls } from './revocations.ts'
import { tokenCalls } from './tokens.ts'
import { createWait } from './wait.ts'

const MAX_ENDED_API_KEY_DAYS = 3_650
const DAY_SECONDS = 86_400

export interface OperatorsOptions {
  /**
   * Days for which API keys that have expired or were revoked stay listed, so that their use can be
   * billed: 1 to 3,650. Default 100.
   */
  readonly endedApiKeyDays?: number
  /**
   * Whether the calls accept the browser session of a person whose role has the permission of the call. Needs
   * `signIn()`. With `{ authentication: { maxAgeSeconds: 900 } }`, calls that change something also need a recent
   * or stronger login. Default false: only tokens and API keys are accepted.
   */
  readonly sessions?: boolean | PeopleDefinition
}

const optionsSchema = z.strictObject({
  endedApiKeyDays: z._default(wholeNumber(1, MAX_ENDED_API_KEY_DAYS), 100),
  sessions: z._default(peopleSchema, false),
})

/**
 * Returns the calls below `/-/admin`, for the policy's `features`. The command line uses them. Throws
 * `Misconfigured` for a mistake in the options.
 */
export function operators(options: OperatorsOptions = {}): Feature {
  const { endedApiKeyDays, sessions } = parseConfiguration('The policy', optionsSchema, options, [
    'operators',
  ])
  return {
    name: 'operators',
    presence: 'more',
    settings: {
      endedApiKeyDays,
      sessions: sessions !== false,
      ...(typeof sessions === 'object' && sessions),
    },
    effects: { endedApiKeyDays: 'none', sessions: 'more', ...DEMAND_EFFECTS },
    ...(sessions !== false && { requires: ['signIn'] }),
    variables: clientVariables,
    create(parts) {
      const context = createContext(parts, endedApiKeyDays * DAY_SECONDS)
      const people = sessions === true ? {} : sessions
      return {
        calls() {
          const peopleDemand = people === false ? undefined : people.authentication
          const acceptPeople = people === false ? undefined : peopleOf(parts, people)
          return [
            ...GROUPS,
            ...parts
              .contributed()
              .contributions.flatMap(({ operatorCalls }) => operatorCalls ?? []),
          ].flatMap((callsOf) => callsOf({ ...context, acceptPeople, peopleDemand }))
        },
      }
    },
  }
}

const GROUPS: readonly ((context: AdminContext) => readonly AdminCall[])[] = [
  clientCalls,
  apiKeyCalls,
  revocationCalls,
  banCalls,
  limitCalls,
  planCalls,
  recordCalls,
  tokenCalls,
  explanationCalls,
]

function createContext(parts: FeatureParts, endedSeconds: number): AdminContext {
  const { config, policy, redis, relationCheck, authorizer, admission, now } = parts
  const auditDb = parts.auditDb && trailOf(parts.auditDb)
  const { publicUrl } = config
  const clients = clientsOf(config)
  const signingKeys = config.signingKeys?.keys ?? []
  const operatorLimit = policy.limits.get(OPERATORS_LIMIT)
  const life = longestLifeSeconds(policy, config)
  return {
    publicUrl,
    authorizer,
    admitAgain: createReadmission({ admission, strict: true }),
    explain(explained) {
      const { admissionStore: createStore = createRedisAdmissionStore } = parts
      const store = createStore(redis, relationCheck)
      const signs = config.signingKeys !== undefined
      const { contributions } = parts.contributed()
      return createExplainer({ core: parts, contributions, policy, store, signs })(explained)
    },
    scopeUseOf: (issuer) =>
      config.issuers.find((trusted) => trusted.issuer === issuer)?.scopes ??
      (issuer === publicUrl ? undefined : DEFAULT_SCOPE_USE),
    policyLimits: policy.limits,
    operatorLimits: operatorLimit === undefined ? [] : [operatorLimit],
    // The gateway vouches for API keys, even without signing keys.
    tenantIssuers: listTenantIssuers(policy, config),
    issuers: [...new Set([...config.issuers.map(({ issuer }) => issuer), publicUrl])],
    serverProfile: () => SERVER_PROFILE.of(parts),
    clients: createClientRegistry({ redis, configured: clients, publicUrl, now }),
    apiKeys: createApiKeys({ redis, publicUrl, now, endedSeconds }),
    revocations: createRevocationLog(redis, now),
    waitUntilInForce: createWait(policy.revocation.maxStalenessMs),
    bulkRevocation: createRevocations(redis, now),
    revocationFacts: createGrantStore(redis),
    bans: createBanList(redis, now),
    overrides: createOverrideList(redis, now),
    planAssignments: createPlanAssignments(redis, now),
    plansOfKeys: createKeyPlanReader(redis, publicUrl),
    operatorPermissions: [
      ...OPERATOR_PERMISSIONS,
      ...listFeatures(policy).flatMap(({ permissions = [] }) => permissions),
    ],
    roles: [...policy.roles.keys()],
    windows: createLimitControls(redis, now),
    auditLog: auditDb === undefined ? undefined : createAuditLog(auditDb),
    auditUsage: auditDb === undefined ? undefined : createAuditUsage(auditDb),
    chainLog: auditDb === undefined ? undefined : createChainLog(auditDb),
    auditErasures: auditDb === undefined ? undefined : createErasureOrders(auditDb, now),
    overflowRedaction: createOverflowRedaction(redis),
    tokenIssuer:
      config.signingKeys === undefined
        ? undefined
        : createTokenIssuer({
            keys: signingKeys,
            issuer: publicUrl,
            references: createReferenceStore(redis, now),
            defaultTtlSeconds: policy.tokens.accessTokenSeconds,
            now,
          }),
    signingKeys,
    revokedBeforeSeconds: life.access,
    revokedTokenSeconds: life.token,
    now,
  }
}

/** Where each kind of key of one server is on a cluster. `redis import` copies keys by this table. */
import {
  authorizationServerKeys,
  clusterKeys,
  codeKeys,
  consoleKeys,
  createKeys,
  endsKey,
  featureKeys,
  recordKeys,
  relationKeys,
  replicationKeys,
  signalKeys,
  signInKeys,
} from '../../../../redis/keys.ts'

/**
 * Where a key is copied to.
 *
 * - `control`: to the control lane.
 * - `fact`: to the control lane, and from there to the lanes that need it, as a gateway does.
 * - `owners`: to the control lane. The name ends with the name of another key.
 * - `party`: to the lane of the party that a window counts.
 * - `tenant`: to the lane of a tenant.
 * - `subject`: to the lane of the subject in the value.
 * - `user`: to the lane of the subject in the name.
 * - `hash`: to the lane of the hash in the name.
 * - `use`: there, and to the control lane. Both record a single use; see `lanesOfUse`.
 * - `everywhere`: to the control lane and all others.
 */
export type Place =
  | ('control' | 'fact' | 'owners' | 'party' | 'tenant')
  | ('subject' | 'user' | 'hash' | 'use' | 'everywhere')

export type Rule =
  | {
      readonly to: Place
      /** `end`: the key changes with each request, so only the last pass copies it. */
      readonly at?: 'end'
    }
  /** The reason why no pass copies the key. */
  | { readonly skip: string }

export interface Kind {
  /** The beginning of the name, or the whole name, without the prefix. */
  readonly name: string
  readonly rule: Rule
}

const CONTROL: Rule = { to: 'control' }
const CONTROL_AT_END: Rule = { to: 'control', at: 'end' }
const FACT: Rule = { to: 'fact' }
const TENANT: Rule = { to: 'tenant' }
const SUBJECT: Rule = { to: 'subject' }
const USER: Rule = { to: 'user' }
const HASH: Rule = { to: 'hash' }
const USE: Rule = { to: 'use' }
const OF_A_CLUSTER: Rule = { skip: 'only a cluster has it' }
const OF_METRICS: Rule = { skip: 'counters begin again, as after a restart of Redis' }

type Names<Keys> = Exclude<keyof Keys, 'prefix'>
type Rules<Keys> = Readonly<Record<Names<Keys>, Rule>>

/** A name, or the names of a list of records. */
type Named = string | { readonly prefix: string; readonly index: string }

function kindsIn<Keys extends Readonly<Record<string, Named>>>(
  keys: Keys,
  rules: Rules<Keys>,
): readonly Kind[] {
  const all: Readonly<Record<string, Rule>> = rules
  return Object.entries(keys).flatMap(([id, named]): readonly Kind[] => {
    const rule = all[id]
    if (rule === undefined) return []
    if (typeof named === 'string') return [{ name: named, rule }]
    const { prefix, index } = named
    return [prefix, index, endsKey(index)].map((name) => ({ name, rule }))
  })
}

const NONE = { prefix: '' }
/** Stands for a tenant. No name contains it. */
const ANY = '\n'
const beforeAny = (name: string): string => name.slice(0, name.indexOf(ANY))
const relations = relationKeys(NONE, ANY)

/** Every kind of key. A name of `keys.ts` without a rule is an error of the compiler. */
const KINDS: readonly Kind[] = [
  ...kindsIn(createKeys(''), {
    revokedToken: FACT,
    revokedBefore: FACT,
    readiness: { skip: 'no code reads it' },
    feed: { skip: 'each lane has its own feed, and new gateways have not read any' },
    addressBan: FACT,
    credentialsBan: FACT,
    subjectBan: FACT,
    observedAddressBan: FACT,
    observedCredentialsBan: FACT,
    observedSubjectBan: FACT,
    banRecords: CONTROL,
    owners: { to: 'owners' },
    // A caller must not get a new window by the move.
    limit: { to: 'party', at: 'end' },
    limitOverride: FACT,
    plan: FACT,
    authenticationFailures: CONTROL_AT_END,
    violations: CONTROL_AT_END,
    automaticBans: CONTROL,
    // The name is a hash, so the lane of its subject is unknown. Without it, a proof could be replayed.
    proof: { to: 'everywhere', at: 'end' },
    reference: SUBJECT,
    overflow: CONTROL_AT_END,
    overflowLost: CONTROL_AT_END,
    overflowLostEvent: CONTROL_AT_END,
    overflowBatch: { skip: 'only the gateway that stored the batch sends it again' },
    auditStream: CONTROL_AT_END,
    metrics: OF_METRICS,
    metricsIsolates: OF_METRICS,
    metricsReport: OF_METRICS,
  }),
  ...kindsIn(replicationKeys(NONE), {
    pendingFacts: OF_A_CLUSTER,
    facts: OF_A_CLUSTER,
    marker: OF_A_CLUSTER,
    factClock: OF_A_CLUSTER,
    copied: OF_A_CLUSTER,
    acknowledged: OF_A_CLUSTER,
    moved: OF_A_CLUSTER,
  }),
  ...kindsIn(clusterKeys(NONE), {
    lanes: OF_A_CLUSTER,
    importState: OF_A_CLUSTER,
    imported: OF_A_CLUSTER,
  }),
  ...kindsIn(recordKeys(NONE), {
    revocationRecords: CONTROL,
    apiKeyRecords: CONTROL,
    planRecords: CONTROL,
    limitOverrideRecords: CONTROL,
    limitOwner: CONTROL,
    planOwner: CONTROL,
    apiKeyUse: CONTROL_AT_END,
  }),
  ...kindsIn(authorizationServerKeys(NONE), {
    clients: CONTROL,
    client: CONTROL,
    clientFailures: CONTROL_AT_END,
    clientAddress: CONTROL,
    clientAssertion: { to: 'use', at: 'end' },
    clientExchanges: CONTROL_AT_END,
    tokenExchanges: CONTROL_AT_END,
    refreshFamily: SUBJECT,
  }),
  ...kindsIn(codeKeys(NONE), {
    code: SUBJECT,
    authorizationRequest: HASH,
    consents: USER,
    consentSessions: USER,
    registeredClient: CONTROL,
    oauthRequests: CONTROL_AT_END,
  }),
  ...kindsIn(signInKeys(NONE), {
    signIn: HASH,
    handOver: HASH,
    session: SUBJECT,
    userSessions: USER,
    sessionRefresh: { skip: 'a session only refreshes its tokens earlier' },
    logoutToken: USE,
  }),
  ...kindsIn(signalKeys(NONE), {
    signalEvent: CONTROL,
    signalAccount: CONTROL,
    signalContact: CONTROL,
    signalContactsOf: CONTROL,
    signalPoll: CONTROL,
  }),
  ...kindsIn(consoleKeys(NONE), {
    mcpTools: CONTROL,
    policies: CONTROL,
    policy: CONTROL,
    policyBy: CONTROL,
    notice: { skip: 'an operator only does not see what the last action has done' },
  }),
  ...kindsIn(
    {
      tuples: beforeAny(relations.tuples),
      usersets: beforeAny(relations.usersets),
      index: beforeAny(relations.index),
      subjects: beforeAny(relations.subjects),
      version: beforeAny(relations.version),
    } satisfies Readonly<Record<keyof typeof relations, string>>,
    { tuples: TENANT, usersets: TENANT, index: TENANT, subjects: TENANT, version: TENANT },
  ),
  ...kindsIn({ feature: beforeAny(featureKeys(NONE, ANY)) }, { feature: CONTROL }),
]

/** Returns the kind of a key, from its name without the prefix. Undefined: no kind has such a name. */
export const kindOf = (name: string): Kind | undefined =>
  KINDS.find((kind) => (kind.name.endsWith(':') ? name.startsWith(kind.name) : name === kind.name))

/**
 * Names of all keys in Redis. No other module of `src` writes a name, so that each kind of key is in
 * one place. docs/storage-schema.md describes the values. Lua scripts get names from `lua-keys.ts`.
 *
 * {@link createKeys} has the names that every gateway uses. The names of an opt-in feature have a
 * function of their own, so that only a policy with the feature has them in its bundle.
 */

/** The beginning of all names, unless `REDIS_PREFIX` is another one. */
export const DEFAULT_KEY_PREFIX = 'pc:'

/** The names of the keys of one gateway. A client has them, see `RedisConnection`. */
export type RedisKeys = Readonly<ReturnType<typeof createKeys>>

type Prefix = Pick<RedisKeys, 'prefix'>

/** Returns the names with a prefix. Gateways with different prefixes share no key. */
export function createKeys(prefix: string) {
  return {
    prefix,
    /** A token that is revoked; the hash of its id follows. */
    revokedToken: `${prefix}revoked:`,
    /** A revocation cutoff; kind, issuer and value follow. */
    revokedBefore: `${prefix}cutoff:`,
    /** Written by the readiness check; no code reads it. */
    readiness: `${prefix}readiness`,
    /** The feed of changed revocations, cutoffs and bans. */
    feed: `${prefix}revocation-feed`,

    /** Bans in force, and bans in observe mode. An address, or issuer and subject, follow. */
    addressBan: `${prefix}ban:address:`,
    /** Bans of the credentials of an address: they refuse no anonymous request. */
    credentialsBan: `${prefix}ban:credentials:`,
    subjectBan: `${prefix}ban:subject:`,
    observedAddressBan: `${prefix}observed-ban:address:`,
    observedCredentialsBan: `${prefix}observed-ban:credentials:`,
    observedSubjectBan: `${prefix}observed-ban:subject:`,

    /** The list of bans, see {@link recordKeys}. */
    banRecords: { prefix: `${prefix}ban-record:`, index: `${prefix}bans` },
    /** The owners of a key that several records write; that key follows. */
    owners: `${prefix}holders:`,

    /** An exact window; the key of the limit follows. The other engine appends `:` and a number. */
    limit: `${prefix}limit:`,
    /** The override of a window: the key of the limit and {@link LIMIT_OVERRIDE_SUFFIX} follow. */
    limitOverride: `${prefix}limit-override:`,
    /** The name of the plan of a party: its kind, issuer and value follow. */
    plan: `${prefix}plan:`,

    /** The failed authentications of an address at the gateway; it follows. */
    authenticationFailures: `${prefix}authentication-failures:`,

    /** Violations, and automatic bans so far. An address, or issuer and subject, follow. */
    violations: `${prefix}violations:`,
    automaticBans: `${prefix}automatic-bans:`,

    /** Exists if a DPoP proof was used; a hash follows. */
    proof: `${prefix}dpop:`,

    /** The record of an opaque token or API key; the hash of the credential follows. */
    reference: `${prefix}reference:`,

    /** Sorted set of the audit events in the overflow (JSON), scored by milliseconds. */
    overflow: `${prefix}audit:spill`,
    /** Number of lost events that no event reports yet. */
    overflowLost: `${prefix}audit:lost`,
    /** Set of at most one event (JSON). It reports lost events and waits for the queue. */
    overflowLostEvent: `${prefix}audit:lost-event`,
    /** Exists if a batch of events has been stored; the batch's id follows. */
    overflowBatch: `${prefix}audit:batch:`,
    /** Stream of the audit events (JSON) that are not stored yet, without Cloudflare Queues. */
    auditStream: `${prefix}audit:stream`,

    /** Hash: the totals of the metrics by name of the series. */
    metrics: `${prefix}metrics:totals`,
    /** Sorted set of isolates and of their circuit breakers that are not closed, by report. */
    metricsIsolates: `${prefix}metrics:isolates`,
    /** The number of an isolate's last report; the isolate follows. */
    metricsReport: `${prefix}metrics:report:`,
  }
}

/** Returns the name of a key with another prefix. */
export const renamed = (name: string, from: Prefix, to: Prefix): string =>
  to.prefix + name.slice(from.prefix.length)

/** Returns the names that a cluster needs to have facts in all of its lanes. */
export const replicationKeys = ({ prefix }: Prefix) => ({
  /** Sorted set of the facts that some lanes may not have yet. Only in the control lane. */
  pendingFacts: `${prefix}pending-facts`,
  /** Sorted set of the facts that lanes have, by the second in which each ends. Only in the control lane. */
  facts: `${prefix}facts`,
  /** Exists if the lane has its keys. In the control lane: if all lanes have had it. */
  marker: `${prefix}marker`,
  /** The version of the last read of facts. Only in the control lane. */
  factClock: `${prefix}fact-clock`,
  /** The version of the last copy of a fact; the name of its key follows, without the prefix. */
  copied: `${prefix}copied:`,
  /** Written with each call that waits for replicas. */
  acknowledged: `${prefix}acknowledged`,
  /** The number of the lane that has a credential, in the lane of the hash of its secret; the hash follows. */
  moved: `${prefix}moved:`,
})

/** Returns the names of the records of operators, besides bans. */
export const recordKeys = ({ prefix }: Prefix) => ({
  /**
   * Lists of records: the prefix of the records, and the index, a sorted set of their ids. The
   * expiry of each record is in another sorted set, see {@link endsKey}.
   */
  revocationRecords: { prefix: `${prefix}revocation:`, index: `${prefix}revocations` },
  apiKeyRecords: { prefix: `${prefix}api-key:`, index: `${prefix}api-keys` },
  planRecords: { prefix: `${prefix}plan-record:`, index: `${prefix}plans` },
  limitOverrideRecords: {
    prefix: `${prefix}limit-override-record:`,
    index: `${prefix}limit-overrides`,
  },

  /** The id of the record that owns a window's override. */
  limitOwner: `${prefix}limit-owner:`,
  /** The id of the record that owns the plan of a party. */
  planOwner: `${prefix}plan-owner:`,

  /** The second of the last use of an API key; its id follows. */
  apiKeyUse: `${prefix}api-key-use:`,
})

export const authorizationServerKeys = ({ prefix }: Prefix) => ({
  /** The index of the clients: a sorted set of their ids. */
  clients: `${prefix}clients`,
  /** The record of a client; its id follows. */
  client: `${prefix}client:`,
  /** The failed authentications at the token endpoint. `address` or `client` follows, then its value. */
  clientFailures: `${prefix}client-failures:`,
  /** Exists if a client has authenticated from an address. Both follow. */
  clientAddress: `${prefix}client-address:`,

  /** Exists if an assertion was used; a hash follows. */
  clientAssertion: `${prefix}client-assertion:`,

  /** Token exchanges of a client, and of a subject token. The client's id, or a hash, follows. */
  clientExchanges: `${prefix}exchanges:client:`,
  tokenExchanges: `${prefix}exchanges:token:`,

  /** A refresh family; its hash follows. */
  refreshFamily: `${prefix}refresh:`,
})

/** Returns the names of the authorization code flow. */
export const codeKeys = ({ prefix }: Prefix) => ({
  /** An authorization code; its hash follows. */
  code: `${prefix}code:`,
  /** A pushed or unconfirmed authorization request; the hash of its handle follows. */
  authorizationRequest: `${prefix}authorization-request:`,
  /** What a user has allowed, by client. Issuer and subject follow. */
  consents: `${prefix}consents:`,
  /** Sessions of a client that a user has allowed, by their end. Issuer, subject, client follow. */
  consentSessions: `${prefix}consent-sessions:`,
  /** A client that has registered itself; its id follows. */
  registeredClient: `${prefix}registered-client:`,
  /** Counts requests to public endpoints of the authorization server. The name continues with the endpoint and the sender. */
  oauthRequests: `${prefix}oauth-requests:`,
})

export const signInKeys = ({ prefix }: Prefix) => ({
  /** A login in progress; the hash of its `state` follows. */
  signIn: `${prefix}sign-in:`,
  /** A login that another host may take over; the hash of its code follows. */
  handOver: `${prefix}hand-over:`,
  /** A browser session; its id follows. */
  session: `${prefix}session:`,
  /** The sessions of a user: a sorted set of their ids. Issuer and subject follow. */
  userSessions: `${prefix}user-sessions:`,
  /** Exists if the tokens of a session need no refresh; the id of the session follows. */
  sessionRefresh: `${prefix}session-refresh:`,
  /** Exists if a logout token has been used; a hash follows. */
  logoutToken: `${prefix}logout-token:`,
})

/** Returns the names of shared signals. */
export const signalKeys = ({ prefix }: Prefix) => ({
  /** Exists if a security event has been applied; a hash follows. */
  signalEvent: `${prefix}signal-event:`,
  /** The last event that disabled or enabled a subject. Issuer and subject follow. */
  signalAccount: `${prefix}signal-account:`,
  /** The users with an e-mail address or a phone number; a hash follows. */
  signalContact: `${prefix}signal-contact:`,
  /** The hashes of the contacts of a user. Issuer and subject follow. */
  signalContactsOf: `${prefix}signal-contacts-of:`,
  /** Exists while a transmitter must not be polled again; a hash follows. */
  signalPoll: `${prefix}signal-poll:`,
})

/** Returns the names in the control lane of a cluster. */
export const clusterKeys = ({ prefix }: Prefix) => ({
  /** The number of lanes. */
  lanes: `${prefix}lanes`,
  /** Hash: where an import comes from (`source`), and the second in which it ended (`ended`). */
  importState: `${prefix}import`,
  /** Set: the names of the imported keys, without the prefix, until the import ends. */
  imported: `${prefix}imported`,
})

/** Returns the names of the relations of a tenant; `tenant` is a part of a key. */
export const relationKeys = ({ prefix }: Prefix, tenant: string) => ({
  tuples: `${prefix}tuples:${tenant}:`,
  usersets: `${prefix}usersets:${tenant}:`,
  index: `${prefix}tuple-index:${tenant}:`,
  subjects: `${prefix}subject-tuples:${tenant}:`,
  version: `${prefix}relation-version:${tenant}`,
})

/** Returns the beginning of the names of a feature of the user. `feature` has only lower-case letters, digits and hyphens. */
export const featureKeys = ({ prefix }: Prefix, feature: string) => `${prefix}feature:${feature}:`

/** The names with {@link DEFAULT_KEY_PREFIX}. */
export const DEFAULT_KEYS: RedisKeys = /* @__PURE__ */ createKeys(DEFAULT_KEY_PREFIX)

/** `@upstash/ratelimit` appends it to the name of an override. */
export const LIMIT_OVERRIDE_SUFFIX = ':dynamic:global'

/**
 * Returns the key of the expiries of a list: a sorted set of record ids. The score is the second in
 * which the record expires, or infinite for a record without expiry.
 */
export const endsKey = (index: string): string => `${index}:ends`

export const consoleKeys = ({ prefix }: Prefix) => ({
  /**
   * Hash of the tools of an MCP server: the definitions that were seen and are not those of the policy, and the
   * approved ones. The path of the server follows.
   */
  mcpTools: `${prefix}mcp-tools:`,
  /** Sorted set of the policies that gateways have used, by the time of their first use: time, `:` and a hash. */
  policies: `${prefix}policies`,
  /** The effective policy (JSON); its hash follows. */
  policy: `${prefix}policy:`,
  /** Who deployed a policy, as the deployment says; its member of `policies` follows. */
  policyBy: `${prefix}policy-by:`,
  /** What an action has done, until the next page shows it (JSON); a random name follows. */
  notice: `${prefix}notice:`,
})

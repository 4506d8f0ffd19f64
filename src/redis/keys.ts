/**
 * Names of all keys in Redis. No other module of `src` writes a name, so that each kind of key is in
 * one place. docs/storage-schema.md describes the values. Lua scripts get names from here, too.
 */
import { keyPart } from './key-part.ts'

/** A token that is revoked; the hash of its id follows. */
export const REVOKED_TOKEN_PREFIX = 'pc:revoked:'
/** A revocation cutoff; kind, issuer and value follow. */
export const REVOKED_BEFORE_PREFIX = 'pc:cutoff:'
/** The feed of changed revocations, cutoffs and bans. */
export const FEED_KEY = 'pc:revocation-feed'

/** Bans in force, and bans in observe mode. An address, or issuer and subject, follow. */
export const ADDRESS_BAN_PREFIX = 'pc:ban:address:'
export const SUBJECT_BAN_PREFIX = 'pc:ban:subject:'
export const OBSERVED_ADDRESS_BAN_PREFIX = 'pc:observed-ban:address:'
export const OBSERVED_SUBJECT_BAN_PREFIX = 'pc:observed-ban:subject:'

/** An exact window; the key of the limit follows. The other engine appends `:` and a number. */
export const LIMIT_PREFIX = 'pc:limit:'
/** The override of a window: the key of the limit and a suffix that `@upstash/ratelimit` appends. */
export const LIMIT_OVERRIDE_PREFIX = 'pc:limit-override:'
export const LIMIT_OVERRIDE_SUFFIX = ':dynamic:global'
/** The id of the record that owns a window's override. */
export const LIMIT_OWNER_PREFIX = 'pc:limit-owner:'

/** The owners of a key that several records write; that key follows. */
export const OWNERS_PREFIX = 'pc:holders:'

/**
 * Lists of records: the prefix of the records, and the index, a sorted set of their ids. The expiry
 * of each record is in another sorted set, see {@link endsKey}.
 */
export const REVOCATION_RECORDS = { prefix: 'pc:revocation:', index: 'pc:revocations' } as const
export const BAN_RECORDS = { prefix: 'pc:ban-record:', index: 'pc:bans' } as const
export const API_KEY_RECORDS = { prefix: 'pc:api-key:', index: 'pc:api-keys' } as const
export const LIMIT_OVERRIDE_RECORDS = {
  prefix: 'pc:limit-override-record:',
  index: 'pc:limit-overrides',
} as const

/**
 * Returns the key of the expiries of a list: a sorted set of record ids. The score is the second in
 * which the record expires, or infinite for a record without expiry.
 */
export const endsKey = (index: string): string => `${index}:ends`

/** The index of the clients: a sorted set of their ids. */
export const CLIENTS_INDEX = 'pc:clients'
/** The record of a client; its id follows. */
export const CLIENT_PREFIX = 'pc:client:'

/** Returns the key of the failed authentications of an address or a client of the token endpoint. */
export async function clientFailuresKey(by: 'address' | 'client', value: string): Promise<string> {
  return `pc:client-failures:${by}:${await keyPart(value)}`
}

/** Returns the key that exists if a client has authenticated from an address. */
export async function clientAddressKey(clientId: string, address: string): Promise<string> {
  return `pc:client-address:${await keyPart(clientId)}:${await keyPart(address)}`
}

/** Returns the key of the failed authentications of an address at the gateway. */
export async function authenticationFailuresKey(address: string): Promise<string> {
  return `pc:authentication-failures:${await keyPart(address)}`
}

/** Violations, and automatic bans so far. An address, or issuer and subject, follow. */
export const VIOLATIONS_PREFIX = 'pc:violations:'
export const AUTOMATIC_BANS_PREFIX = 'pc:automatic-bans:'

/** Keys that record the single use of an assertion or proof; a hash follows. */
export const CLIENT_ASSERTION_PREFIX = 'pc:client-assertion:'
export const PROOF_PREFIX = 'pc:dpop:'

/** Token exchanges of a client, and of a subject token. The client's id, or a hash, follows. */
export const CLIENT_EXCHANGES_PREFIX = 'pc:exchanges:client:'
export const TOKEN_EXCHANGES_PREFIX = 'pc:exchanges:token:'

/** The record of an opaque token or API key; the hash of the credential follows. */
export const REFERENCE_PREFIX = 'pc:reference:'
/** A refresh family; its hash follows. */
export const REFRESH_FAMILY_PREFIX = 'pc:refresh:'

/** Relation tuples; the tenant follows. See `RelationKeys`. */
export const TUPLES_PREFIX = 'pc:tuples:'
export const USERSETS_PREFIX = 'pc:usersets:'
export const TUPLE_INDEX_PREFIX = 'pc:tuple-index:'
export const SUBJECT_TUPLES_PREFIX = 'pc:subject-tuples:'
export const RELATION_VERSION_PREFIX = 'pc:relation-version:'

/** Sorted set of the audit events in the overflow (JSON), scored by milliseconds. */
export const OVERFLOW_KEY = 'pc:audit:spill'
/** Number of lost events that no event reports yet. */
export const OVERFLOW_LOST_KEY = 'pc:audit:lost'
/** Set of at most one event (JSON). It reports lost events and waits for the queue. */
export const OVERFLOW_LOST_EVENT_KEY = 'pc:audit:lost-event'
/** Exists if a batch of events has been stored; the batch's id follows. */
export const OVERFLOW_BATCH_PREFIX = 'pc:audit:batch:'

/** Hash: the totals of the metrics by name of the series. */
export const METRICS_KEY = 'pc:metrics:totals'
/** Sorted set of isolates and of their circuit breakers that are not closed, by time of report. */
export const METRICS_ISOLATES_KEY = 'pc:metrics:isolates'
/** The number of an isolate's last report; the isolate follows. */
export const METRICS_REPORT_PREFIX = 'pc:metrics:report:'

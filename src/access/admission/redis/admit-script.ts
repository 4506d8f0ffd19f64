/** The command of `admit.lua`, and its reply. */
import { Unavailable } from '../../../errors.ts'
import type { RedisCommand } from '../../../redis/connection.ts'
import type { RedisKeys } from '../../../redis/keys.ts'
import { malformed, readCount, readList, readSeconds, readText } from '../../../redis/reply.ts'
import type { LeaseRequest } from '../lease.ts'
import type { AdmissionFacts, AdmissionQuery } from '../store.ts'
import { exactArguments, isExact, readExactState, STATE_VALUES } from './exact-limit.ts'
import { counterName, overrideKey } from './limit-overrides.ts'

const NONE: readonly undefined[] = []
/** In the command before the keys: its name, the script's name, and the number of keys. */
const COMMAND_HEAD = 3
/** In the reply before the keys that exist: their number, and whether the proof was used before. */
const REPLY_HEAD = 2
/** Replaces the number of lease requests in a query that writes nothing. */
const READS = -1
/** Values in the reply for a lease request: the granted units, and the end of their hold. */
const LEASE_VALUES = 2

/** Returns the script call; `name` is the script's digest. */
export function admitCommand(name: string, keys: RedisKeys, query: AdmissionQuery): RedisCommand {
  const { revocation, bans, observedBans = [], limits, proof, nowMs, keyPrefix } = query
  const nameOf = (key: string) =>
    keyPrefix === undefined ? key : keys.prefix + key.slice(keyPrefix.length)
  const exact = limits.filter(({ rule }) => isExact(rule))
  const command: (string | number)[] = ['EVALSHA', name, 0]
  if (revocation.token !== undefined) command.push(nameOf(revocation.token))
  const tokens = command.length - COMMAND_HEAD
  for (const { key } of revocation.revokedBefore) command.push(nameOf(key))
  const revokedBefore = command.length - COMMAND_HEAD
  for (const { key } of bans) command.push(nameOf(key))
  const inForce = command.length - COMMAND_HEAD
  for (const { key } of observedBans) command.push(nameOf(key))
  const checked = command.length - COMMAND_HEAD
  for (const { key } of exact) command.push(overrideKey(keys, key))
  const hasSeconds = exact.some(({ everywhere }) => everywhere !== undefined)
  if (hasSeconds)
    for (const { key, everywhere } of exact) command.push(overrideKey(keys, everywhere ?? key))
  for (const { key } of exact) command.push(counterName(keys, key))
  if (proof !== undefined) command.push(keys.proof + proof.replayId)
  command[2] = command.length - COMMAND_HEAD

  const keepSeconds = proof?.replayTtlSeconds ?? 0
  const { issuedAtSeconds } = revocation
  const isLeased = exact.some(({ leaseRequest }) => leaseRequest !== undefined)
  command.push(checked, hasSeconds ? -exact.length : exact.length)
  command.push(query.isReading ? READS : isLeased ? exact.length : 0)
  const requests = query.reportsTake ? ' t' : ''
  command.push(
    `${keepSeconds} ${tokens} ${revokedBefore} ${inForce} ${issuedAtSeconds} ${nowMs}${requests}`,
  )
  for (const { rule } of exact) command.push(...exactArguments(rule, query.isRenewal))
  if (isLeased) for (const { leaseRequest } of exact) command.push(leaseArgument(leaseRequest))
  return command
}

/** Formats the request of `lease.lua`: an empty text, or five whole numbers. */
function leaseArgument(request: LeaseRequest | undefined): string {
  if (request === undefined) return ''
  const { units, step, holdMs, returned, returnedEndMicros } = request
  return `${units} ${step} ${holdMs * 1000} ${returned} ${returnedEndMicros}`
}

/**
 * Parses the reply. Contains states of exact limits only. Throws `Unavailable` for a malformed
 * reply: a missing value must not read as "not revoked".
 */
export function readFacts(result: unknown, query: AdmissionQuery, nowMs: number): AdmissionFacts {
  const reply = readList(result)
  const existing = readCount(reply[0])
  const { revocation, bans, observedBans = [] } = query
  const tokens = revocation.token === undefined ? 0 : 1
  const revokedBefore = tokens + revocation.revokedBefore.length
  const inForce = revokedBefore + bans.length
  const seconds: (number | undefined)[] = []
  const end = REPLY_HEAD + 2 * existing
  for (let at = REPLY_HEAD; at < end; at += 2) {
    const key = readCount(reply[at], inForce + observedBans.length)
    const value = readText(reply[at + 1])
    if (key === 0) throw malformed()
    // Of a revocation only the presence counts.
    seconds[key - 1] = key <= tokens ? 0 : readSeconds(value)
  }
  return {
    tokenRevoked: tokens === 1 && seconds[0] !== undefined,
    revokedBeforeSeconds: existing === 0 ? NONE : seconds.slice(tokens, revokedBefore),
    bannedUntilSeconds: existing === 0 ? NONE : seconds.slice(revokedBefore, inForce),
    observedUntilSeconds: existing === 0 ? NONE : seconds.slice(inForce),
    proofUsed: readCount(reply[1], 1) === 1,
    limits: readStates(reply, end, query, nowMs),
    takenMicros: query.reportsTake && reply.length > end ? readText(reply.at(-1)) : undefined,
  }
}

/** Returns the states in the order of the query. Undefined: not exact, or nothing was counted. */
function readStates(
  reply: readonly unknown[],
  from: number,
  { limits, reportsTake }: AdmissionQuery,
  nowMs: number,
): AdmissionFacts['limits'] {
  let at = from
  const states = limits.map(({ rule, leaseRequest }) => {
    if (!isExact(rule) || reply.length === from) return undefined
    const state = readExactState(rule, reply.slice(at, at + STATE_VALUES), nowMs)
    at += STATE_VALUES
    if (leaseRequest === undefined) return state
    const grant = {
      units: readCount(reply[at], leaseRequest.units),
      endMicros: readCount(reply[at + 1]),
    }
    at += LEASE_VALUES
    return state instanceof Unavailable ? state : { ...state, grant }
  })
  if (reportsTake && reply.length > from) at += 1
  if (reply.length !== at) throw malformed()
  return states
}

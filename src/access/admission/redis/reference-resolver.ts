/** Resolves a reference with one script call. */
import { Unavailable } from '../../../errors.ts'
import { type RedisConnection, sentOnce } from '../../../redis/connection.ts'
import {
  malformed,
  readCount,
  readInteger,
  readList,
  readResult,
  readSeconds,
  readText,
} from '../../../redis/reply.ts'
import { createScript, runScript } from '../../../redis/script.ts'
import { ADMIT_REFERENCE_SCRIPT } from '../../../redis/scripts.generated.ts'
import { REFERENCE_TOLERANCE_SECONDS } from '../../tokens/reference.ts'
import { parseStoredReference } from '../../tokens/reference-record.ts'
import { nextAdmissionMs } from '../approximate-window.ts'
import type { LimitRule, RateLimit } from '../limit.ts'
import type { AdmissionStore, CallerStore, ReferenceFacts, ReferenceLimit } from '../store.ts'
import { exactArguments, isExact, readExactState } from './exact-limit.ts'
import { findMeterScripts, type MeterScripts } from './meter.ts'

const exact = /* @__PURE__ */ createScript(ADMIT_REFERENCE_SCRIPT, { keys: 'derived' })

const NO_RECORD = 0
/** Special values of the limit in force in the script's reply. */
const FAILED = -1
const NOT_COUNTED = -2
/** Replaces the flag that records the use of a key, in a query that writes nothing. */
const READS = -1
/** Units left in the reply if a window of `@upstash/ratelimit` refuses. */
const REFUSED = -1
/** The value of the argument "when it refuses" for a limit that is not exact. */
const NOT_EXACT = -1
/** Values in the script's reply for one limit. */
const LIMIT_WIDTH = 5

/** Creates `resolve` of an {@link AdmissionStore}. */
export function createRedisReferenceResolver(redis: RedisConnection): AdmissionStore['resolve'] {
  const { keys: names } = redis
  // Never retried: a second call would find the proof used.
  const once = sentOnce(redis)
  return async function resolve({
    reference,
    audience,
    thumbprint,
    addressBan,
    observedBan,
    credentialsBan,
    observedCredentialsBan,
    limits,
    proof,
    recordsUse,
    isReading,
    nowMs,
  }) {
    const meters = findMeterScripts(limits)
    const keys = [names.reference + reference.hash, addressBan]
    if (proof !== undefined) keys.push(names.proof + proof.replayId)
    const args = [
      nowMs,
      REFERENCE_TOLERANCE_SECONDS,
      audience,
      thumbprint ?? '',
      proof?.replayTtlSeconds ?? 0,
      observedBan ?? '',
      isReading ? READS : recordsUse ? 1 : 0,
      credentialsBan ?? '',
      observedCredentialsBan ?? '',
      ...limits.flatMap((limit) => formatArguments(limit, meters)),
    ]
    const script = meters?.resolution ?? exact
    const reply = await runScript(proof === undefined ? redis : once, script, keys, args)
    const [text, used, read, counted] = readList(reply, 4)
    const counts = readList(counted, limits.length * LIMIT_WIDTH)
    return {
      record: text === NO_RECORD ? undefined : parseStoredReference(text),
      read: readPairs(read, names.revokedToken),
      limits: limits.map((limit, index) => {
        const values = counts.slice(index * LIMIT_WIDTH, (index + 1) * LIMIT_WIDTH)
        const found = readWindow(limit.rule, values, nowMs)
        return found && meters ? { ...found, state: meters.stateOf(found, limit, redis) } : found
      }),
      proofUsed: readCount(used, 1) === 1,
    }
  }
}

function formatArguments(
  limit: ReferenceLimit,
  meters: MeterScripts | undefined,
): (string | number)[] {
  const { rule, window } = limit
  const exact = isExact(rule)
    ? exactArguments(rule)
    : [rule.limit, rule.windowSeconds, 1, NOT_EXACT]
  const numbers = meters?.argumentsOf(limit, exact) ?? exact
  if ('key' in window) return [...numbers, '', window.key]
  return [...numbers, window.isEverywhere ? `${window.by}*` : window.by, rule.name]
}

/** Parses key and value pairs. Values are seconds since the epoch, except for revocations. */
function readPairs(pairs: unknown, revokedToken: string): ReferenceFacts['read'] {
  const list = readList(pairs)
  const read = new Map<string, number | undefined>()
  for (let index = 0; index < list.length; index += 2) {
    const key = readText(list[index])
    const value = list[index + 1] === null ? undefined : readText(list[index + 1])
    read.set(key, readingOf(key, value, revokedToken))
  }
  return read
}

function readingOf(key: string, value: string | undefined, revokedToken: string) {
  if (value === undefined) return undefined
  return key.startsWith(revokedToken) ? 1 : readSeconds(value)
}

/** Keys in one command: more would delay the other clients of Redis. */
const KEYS_AT_ONCE = 500

/** Creates `read` of a {@link CallerStore}. */
export function createReader(redis: RedisConnection): CallerStore['read'] {
  const { revokedToken } = redis.keys
  return async function read(callers) {
    const keys = [...new Set(callers.flatMap((each) => each.keys))]
    const parts: (readonly string[])[] = []
    for (let at = 0; at < keys.length; at += KEYS_AT_ONCE)
      parts.push(keys.slice(at, at + KEYS_AT_ONCE))
    const found = new Map<string, number | undefined>()
    if (parts.length === 0) return found
    const replies = await redis.send(parts.map((part) => ['MGET', ...part]))
    for (const [index, part] of parts.entries()) {
      const values = readList(readResult(replies[index]), part.length)
      for (const [place, key] of part.entries()) {
        const value = values[place]
        const text = value === null ? undefined : readText(value)
        found.set(key, readingOf(key, text, revokedToken))
      }
    }
    return found
  }
}

function readWindow(
  rule: LimitRule,
  [name, ...numbers]: readonly unknown[],
  nowMs: number,
): ReferenceFacts['limits'][number] {
  const key = readText(name)
  if (numbers[0] === NOT_COUNTED) return undefined
  if (numbers[0] === FAILED) return { key, state: new Unavailable('redis', 'refused') }
  if (isExact(rule)) return { key, state: readExactState(rule, numbers, Date.now()) }
  const [limit = NaN, left = NaN, current = NaN, previous = NaN] = numbers.map(readInteger)
  if (limit < 0 || left < REFUSED || (left !== REFUSED && left >= limit)) throw malformed()
  const windowMs = rule.windowSeconds * 1000
  const admitted = left !== REFUSED
  const endMs = (Math.floor(nowMs / windowMs) + 1) * windowMs
  const resetMs = admitted ? endMs : nextAdmissionMs({ current, previous, limit, windowMs }, nowMs)
  const state: RateLimit = { rule, limit, remaining: Math.max(0, left), resetMs, admitted }
  return { key, state }
}

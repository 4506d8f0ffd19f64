/** Checks the Redis database as the gateway uses it: over the REST API of Upstash, and for `resp.ts`. */

import { randomUUID } from 'node:crypto'
import { DEFAULT_REDIS_TIMEOUT_MS } from '../../src/redis/bounded-calls.ts'
import type { RedisCommand } from '../../src/redis/connection.ts'
import { KEY_LOCKING } from '../../src/redis/script.ts'
import { jsonIn } from '../json.ts'
import { isLocal } from './environment.ts'
import { type Finding, mistake, notChecked, ok, warning } from './finding.ts'
import { request, shownUrl } from './request.ts'

const CHECK = 'redis'
/** Reads the clock before it writes, which Redis before version 5 refuses, and uses cjson. */
const SCRIPT = `local time = redis.call('TIME')
redis.call('SET', KEYS[1], ARGV[1], 'PX', 10000)
return cjson.encode({ redis.call('GET', KEYS[1]), #time })`
const PROBE = 'probe'
const EXPECTED = `["${PROBE}",2]`
const SAMPLES = 20
/** Gateways and their tokens tolerate this difference, see `DEFAULT_CLOCK_TOLERANCE_SECONDS`. */
const TOLERATED_SKEW_MS = 5_000
const NOTICED_SKEW_MS = 1_000
const FULL_SHARE = 0.9

export interface Reply {
  readonly result?: unknown
  readonly error?: string
}

export interface RedisTarget {
  readonly url: string
  readonly token: string
  /** Prefix of the gateway's keys, such as `pc:`. */
  readonly prefix: string
  /** `REDIS_TIMEOUT_MS`; undefined: the default. */
  readonly timeoutMs: number | undefined
}

/** The server of the checks that do not depend on the protocol. */
export interface Store extends Pick<RedisTarget, 'prefix' | 'timeoutMs'> {
  /** Sends commands. Returns the replies, or why there are none, beginning with a verb. */
  send(commands: readonly RedisCommand[]): Promise<readonly Reply[] | string>
  /** Whether scripts are tried with the flag of Upstash. */
  readonly keyLocking: boolean
}

/** Checks scripts, latency, clock and memory. The only write is a key that expires after ten seconds. */
export async function storeFindings(store: Store): Promise<readonly Finding[]> {
  return [await scriptFinding(store), ...(await timeFindings(store)), await memoryFinding(store)]
}

/** Runs all checks over REST. */
export async function checkRedis(target: RedisTarget): Promise<readonly Finding[]> {
  const store: Store = {
    prefix: target.prefix,
    timeoutMs: target.timeoutMs,
    keyLocking: true,
    send: (commands) => send(target, commands),
  }
  const found = await store.send([['PING']])
  if (typeof found === 'string') return [unreachableFinding(target, found)]
  const findings = [ok(CHECK, `${shownUrl(target.url)} accepts the token`)]
  if (new URL(target.url).protocol === 'http:' && !isLocal(target.url)) {
    findings.push(
      warning(
        CHECK,
        'UPSTASH_REDIS_REST_URL is http, so the token travels in clear text',
        'Use the https URL of the database.',
      ),
    )
  }
  return [...findings, ...(await storeFindings(store))]
}

/** Sends a pipeline. Returns the replies, or why there are none, beginning with a verb. */
async function send(
  { url, token }: RedisTarget,
  commands: readonly RedisCommand[],
): Promise<readonly Reply[] | string> {
  const answer = await request(`${url.replace(/\/+$/, '')}/pipeline`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body: JSON.stringify(commands),
  })
  if (typeof answer === 'string') return answer
  const replies = jsonIn(answer.text)
  if (answer.status === 401 || answer.status === 403) return REFUSED_TOKEN
  if (answer.status !== 200) return `responds with status ${answer.status}`
  if (!Array.isArray(replies) || replies.length !== commands.length) {
    return 'does not respond like the REST API of Upstash'
  }
  return replies as readonly Reply[]
}

const REFUSED_TOKEN = 'refuses the token'

function unreachableFinding({ url }: RedisTarget, why: string): Finding {
  const remedy =
    why === REFUSED_TOKEN
      ? 'Set UPSTASH_REDIS_REST_TOKEN to the REST token of this database.'
      : 'Set UPSTASH_REDIS_REST_URL to the REST URL of a database that is running (not to its redis:// URL).'
  return mistake(CHECK, `${shownUrl(url)} ${why}`, remedy)
}

/** Checks that a script can be loaded, and runs by its digest. */
async function scriptFinding(store: Store): Promise<Finding> {
  const check = 'redis scripts'
  const loaded = await store.send([
    ['SCRIPT', 'LOAD', SCRIPT],
    ...(store.keyLocking ? [['SCRIPT', 'LOAD', KEY_LOCKING + SCRIPT]] : []),
  ])
  if (typeof loaded === 'string') return mistake(check, `redis ${loaded}`, AGAIN)
  const [plain, locking] = loaded
  const key = `${store.prefix}doctor:${randomUUID()}`
  const digest = String(plain?.result ?? '')
  const ran =
    plain?.error === undefined
      ? await store.send([['EVALSHA', digest, 1, key, PROBE]])
      : [{ error: plain.error }]
  if (typeof ran === 'string') return mistake(check, `redis ${ran}`, AGAIN)
  const [reply] = ran
  if (/NOPERM|permission/i.test(reply?.error ?? '')) {
    return mistake(
      check,
      'the token or the user may not run scripts or write',
      'Use the REST token of the database, not the read-only one; or give the user of the ACL these rights.',
    )
  }
  if (/\bOOM\b/.test(reply?.error ?? '')) {
    return mistake(
      check,
      'the memory of the server is full (OOM), so requests that write get 503',
      'Increase maxmemory, or choose a larger plan.',
    )
  }
  if (/\bMISCONF\b/.test(reply?.error ?? '')) {
    return mistake(
      check,
      'the server cannot store its data and refuses writes (MISCONF), so requests that write get 503',
      'Correct its disk or folder; its log and the section persistence of INFO have the cause.',
    )
  }
  if (/NOSCRIPT/.test(reply?.error ?? '')) {
    return warning(
      check,
      'the server forgets scripts between two calls, so each request needs two calls',
      'Use one server, or a proxy that sends all calls to the same server.',
    )
  }
  if (reply?.result !== EXPECTED) {
    return mistake(
      check,
      'a script that reads the clock, writes a key and uses cjson failed',
      'Use Upstash Redis, or a Redis or Valkey that docs/node.md or docs/deploy.md names.',
    )
  }
  if (!store.keyLocking) return ok(check, 'scripts run by digest')
  return locking?.error === undefined
    ? ok(check, "scripts run by digest, and Upstash's flag is accepted")
    : ok(
        check,
        "scripts run by digest; Upstash's flag is refused, which costs one call per isolate",
      )
}

const AGAIN = 'Run the command again, and check the status of the database if this repeats.'

/** Measures latency and the difference of the clocks, with several calls one after another. */
async function timeFindings(store: Store): Promise<Finding[]> {
  const durations: number[] = []
  let best = { durationMs: Number.POSITIVE_INFINITY, skewMs: 0 }
  for (let count = 0; count < SAMPLES; count++) {
    const startMs = Date.now()
    const begin = performance.now()
    const replies = await store.send([['TIME']])
    const durationMs = performance.now() - begin
    if (typeof replies === 'string') {
      const seen = `call ${count + 1} of ${SAMPLES}: redis ${replies}`
      return [mistake('redis latency', seen, AGAIN)]
    }
    durations.push(durationMs)
    const [seconds, micros] = timeIn(replies[0]?.result)
    const serverMs = seconds * 1_000 + micros / 1_000
    const skewMs = serverMs - (startMs + durationMs / 2)
    if (durationMs < best.durationMs) best = { durationMs, skewMs }
  }
  return [latencyFinding(durations, store.timeoutMs), clockFinding(best.skewMs, best.durationMs)]
}

function timeIn(result: unknown): readonly [number, number] {
  const [seconds, micros] = Array.isArray(result) ? result.map(Number) : []
  return [seconds ?? Number.NaN, micros ?? Number.NaN]
}

function latencyFinding(durations: readonly number[], timeoutMs = DEFAULT_REDIS_TIMEOUT_MS) {
  const check = 'redis latency'
  const sorted = [...durations].sort((a, b) => a - b)
  const at = (share: number) => Math.round(sorted[Math.ceil(share * sorted.length) - 1] ?? 0)
  const [median, high, worst] = [at(0.5), at(0.95), at(1)]
  const seen = `${SAMPLES} calls from this machine: median ${median} ms, 95th percentile ${high} ms, slowest ${worst} ms; REDIS_TIMEOUT_MS is ${timeoutMs} ms`
  const remedy =
    'Run the command near the gateway; if it is slow there too, choose a nearer region or a larger REDIS_TIMEOUT_MS.'
  if (median >= timeoutMs) return mistake(check, seen, remedy)
  return high >= timeoutMs / 2 ? warning(check, seen, remedy) : ok(check, seen)
}

/** `skewMs` is exact within half of the duration of the call. */
function clockFinding(skewMs: number, durationMs: number): Finding {
  const check = 'redis clock'
  if (Number.isNaN(skewMs)) {
    return notChecked(check, 'the server does not report its time', 'Compare its clock by hand.')
  }
  const error = Math.ceil(durationMs / 2)
  const shown = `${Math.abs(skewMs / 1_000).toFixed(1)} s`
  const seen = `${shown} ${skewMs < 0 ? 'behind' : 'ahead of'} this machine (± ${error} ms)`
  const remedy =
    'Synchronize the clock of this machine or of the server by NTP, and run the command again.'
  const difference = Math.abs(skewMs) - error
  if (difference > TOLERATED_SKEW_MS) {
    const effect = 'tokens and bans begin and end at wrong times, and a revocation may miss tokens'
    return mistake(check, `${seen}: with such a clock at a gateway, ${effect}`, remedy)
  }
  if (difference > NOTICED_SKEW_MS) {
    return warning(check, `${seen}: less than gateways tolerate, but not synchronized`, remedy)
  }
  return ok(check, seen)
}

/** Checks that Redis does not remove keys when its memory is full. */
async function memoryFinding(store: Store): Promise<Finding> {
  const check = 'redis memory'
  const replies = await store.send([['INFO', 'memory']])
  const text = typeof replies === 'string' ? '' : String(replies[0]?.result ?? '')
  const policy = /^maxmemory_policy:(\S+)/m.exec(text)?.[1]
  if (policy === undefined) {
    return notChecked(
      check,
      'the server does not report its eviction policy',
      'Check that its eviction policy is noeviction; the console of Upstash has it.',
    )
  }
  const max = Number(/^maxmemory:(\d+)/m.exec(text)?.[1] ?? 0)
  const used = Number(/^used_memory:(\d+)/m.exec(text)?.[1] ?? 0)
  if (policy !== 'noeviction' && max > 0) {
    return mistake(
      check,
      `maxmemory-policy is ${policy}: a full Redis removes revocations and bans`,
      'Set maxmemory-policy to noeviction; with Upstash, disable eviction in its console.',
    )
  }
  if (max > 0 && used > max * FULL_SHARE) {
    return warning(
      check,
      `${Math.round((100 * used) / max)} % of maxmemory is used; a full Redis refuses every request that writes`,
      'Increase maxmemory, or choose a larger plan.',
    )
  }
  return ok(
    check,
    max === 0 ? `${policy}, no maxmemory` : `${policy}, ${Math.round((100 * used) / max)} % used`,
  )
}

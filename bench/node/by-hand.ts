/**
 * What an engineer who knows Node would write for one API: verified tokens are cached, one script over
 * ioredis decides revocation and a sliding window, undici calls the origin with the identity, and each
 * request is an event in JSON: a line of the log, or with `AUDIT_FILE` an entry of a Redis stream that a
 * thread stores in SQLite. All that it does not need is left out, Hono as well.
 */
import { createServer, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { Redis, type Result } from 'ioredis'
import { createLocalJWKSet, type JWTPayload, jwtVerify } from 'jose'
import { LRUCache } from 'lru-cache'
import { HOST, ISSUER, JWKS, LIMIT, PORT, REDIS_URL, STREAM } from './environment.ts'
import { forward, headersOf } from './forward.ts'
import { ADMIT, WINDOW_MS } from './window-script.ts'

declare module 'ioredis' {
  interface RedisCommander<Context> {
    admit(...args: readonly (string | number)[]): Result<number, Context>
  }
}

const redis = new Redis(REDIS_URL, { enableAutoPipelining: true })
redis.defineCommand('admit', { numberOfKeys: 3, lua: ADMIT })
const keys = createLocalJWKSet(JSON.parse(JWKS))
const options = { issuer: ISSUER, audience: ISSUER, typ: 'at+jwt', algorithms: ['ES256'] }
const verified = new LRUCache<string, JWTPayload>({ max: 10_000 })

async function claimsOf(token: string): Promise<JWTPayload | undefined> {
  const known = verified.get(token)
  if (known !== undefined) return (known.exp ?? 0) * 1000 > Date.now() ? known : undefined
  try {
    const { payload } = await jwtVerify(token, keys, options)
    verified.set(token, payload)
    return payload
  } catch {
    return undefined
  }
}

/** Returns 1, or the negative status of a refusal. */
function admit({ jti, sub }: JWTPayload, nowMs: number): Promise<number> {
  const window = Math.floor(nowMs / WINDOW_MS)
  const rest = 1 - (nowMs % WINDOW_MS) / WINDOW_MS
  const [current, previous] = [`window:${sub}:${window}`, `window:${sub}:${window - 1}`]
  return redis.admit(`revoked:${jti}`, current, previous, LIMIT, rest)
}

let lines = ''
function log(event: object): undefined {
  if (lines === '') setImmediate(flush)
  lines += `${JSON.stringify(event)}\n`
}
function flush(): void {
  process.stdout.write(lines)
  lines = ''
}

/** Resolves when Redis has the event, so that it survives the end of this process. */
const append = (event: object): Promise<unknown> =>
  redis.xadd(STREAM, '*', 'event', JSON.stringify(event))

let record: (event: object) => Promise<unknown> | undefined = log
if (process.env.AUDIT_FILE !== undefined) {
  new Worker(join(import.meta.dirname, 'by-hand-store.ts'))
  record = append
}

function refuse(outgoing: ServerResponse, status: number): void {
  outgoing.writeHead(status, { 'content-type': 'application/problem+json' })
  outgoing.end(`{"status":${status}}`)
}

createServer(async (incoming, outgoing) => {
  const timeMs = Date.now()
  const headers = headersOf(incoming)
  const { authorization = '', ...others } = headers
  const claims = await claimsOf(authorization.replace(/^Bearer /i, ''))
  if (claims === undefined) return refuse(outgoing, 401)
  let verdict: number
  try {
    verdict = await admit(claims, timeMs)
  } catch {
    return refuse(outgoing, 503)
  }
  const { url: path = '', method } = incoming
  const { sub = '', roles } = claims
  if (verdict !== 1) return refuse(outgoing, -verdict)
  if (!path.startsWith('/orders')) return refuse(outgoing, 404)
  if (!Array.isArray(roles) || !roles.includes('writer')) return refuse(outgoing, 403)
  const identity = { 'x-auth-subject': sub, 'x-auth-roles': roles.join() }
  forward(incoming, outgoing, { ...others, ...identity }, (status) => {
    const ms = Date.now() - timeMs
    return record({ timeMs, subject: sub, method, path, status, decision: 'allowed', ms })
  })
}).listen(PORT, HOST)

/** Serves a Redis over REST for `portcullis redis`. Loaded only by that command. */
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { startRedisRest } from '../dev/start/redis-rest.ts'
import { createShutdown } from '../dev/start/shutdown.ts'
import { refused, usage } from './failure.ts'
import { createOutput, printFailure } from './output.ts'
import { readVariables } from './text-file.ts'

/** Random bytes of a generated token. */
const TOKEN_BYTES = 24
const LOCAL_URL = /^http:\/\/(127\.0\.0\.1|localhost)(:\d+)?\/?$/
/** RFC 6750, 2.1. Also needs no quotes in an environment file. */
const BEARER_TOKEN = /^[\w.~+/-]+=*$/

export interface ServeRedisOptions {
  /** 0 selects a free port. */
  readonly port: number
  readonly json: boolean
  readonly env: NodeJS.ProcessEnv
  /** The folder of the `.env` that can contain the token. */
  readonly folder: string
}

/**
 * Serves until a signal ends it, or until the Redis ends, which is written to stderr. Ends this
 * process. Throws a usage failure if the token is invalid.
 */
export async function serveRedis(options: ServeRedisOptions): Promise<never> {
  const { port, json, env, folder } = options
  const token = tokenOf(env, folder)
  const shutdown = createShutdown()
  try {
    const rest = await startRedisRest({ redisUrl: env.REDIS_URL || undefined, port, token })
    shutdown.defer(rest.close)
    const output = createOutput(json)
    // A URL that the caller named may contain a password.
    const own = env.REDIS_URL ? undefined : rest.redisUrl
    output.remark(`Redis: ${rest.description}`)
    output.result(
      { url: rest.url, token, ...(own && { redisUrl: own }) },
      `UPSTASH_REDIS_REST_URL=${rest.url}\nUPSTASH_REDIS_REST_TOKEN=${token}`,
    )
    if (own !== undefined)
      output.remark(`For redis() of portcullis/redis, and a gateway on Node: REDIS_URL=${own}`)
    throw new Error(`the local Redis ended, and its data is lost (${await rest.died}); start again`)
  } catch (error) {
    if (!shutdown.signal.aborted) {
      printFailure(refused('not_running', (error as Error).message), json)
    }
  }
  return await shutdown.exit(1)
}

/**
 * Returns the token that callers must present. Uses the one in `.env` only if the URL in the same
 * file is local, so that the token of a deployed database is never printed.
 */
function tokenOf(env: NodeJS.ProcessEnv, folder: string): string {
  const token = env.UPSTASH_REDIS_REST_TOKEN || tokenInFile(join(folder, '.env'))
  if (!token) return randomBytes(TOKEN_BYTES).toString('base64url')
  if (BEARER_TOKEN.test(token)) return token
  throw usage('UPSTASH_REDIS_REST_TOKEN: must consist of letters, digits and -._~+/')
}

function tokenInFile(file: string): string | undefined {
  if (!existsSync(file)) return undefined
  const { UPSTASH_REDIS_REST_URL: url, UPSTASH_REDIS_REST_TOKEN: token } = readVariables(file)
  return url !== undefined && LOCAL_URL.test(url) ? token : undefined
}

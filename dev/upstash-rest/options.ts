/** Parses the command line of `upstash-rest`. */
import { parseArgs } from 'node:util'
import type { StartRedisOptions } from '../redis.ts'

const DEFAULT_PORT = 8079

export const USAGE = `Usage: upstash-rest [options]

Serves the REST API of Upstash Redis in front of a Redis, on loopback.

Options:
  --port <number>      port to listen on, 0 for a free one (default ${DEFAULT_PORT})
  --token <token>      token that callers must present (or UPSTASH_REDIS_REST_TOKEN)
  --redis-url <url>    a running Redis to use (or REDIS_URL)
  --embedded           use the embedded Redis, even if another Redis is available
  --help               show this

Without --redis-url and --embedded: a redis-server from the PATH, else the embedded Redis.`

export interface CliOptions {
  readonly port: number
  readonly token: string
  readonly redis: StartRedisOptions
}

/** Parses the arguments. Throws an `Error` of one line if they are invalid. */
export function readOptions(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): CliOptions | 'help' {
  const { values } = parseArgs({
    args: [...args],
    options: {
      port: { type: 'string', default: String(DEFAULT_PORT) },
      token: { type: 'string', default: env.UPSTASH_REDIS_REST_TOKEN ?? '' },
      'redis-url': { type: 'string' },
      embedded: { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  if (values.help) return 'help'
  const url = values['redis-url']
  if (!/^\d{1,5}$/.test(values.port) || Number(values.port) > 65_535) {
    throw new Error('--port must be a number from 0 to 65535')
  }
  if (values.token === '') throw new Error('missing token: set --token or UPSTASH_REDIS_REST_TOKEN')
  if (values.embedded && url !== undefined) {
    throw new Error('--embedded and --redis-url exclude each other')
  }
  return {
    port: Number(values.port),
    token: values.token,
    redis: values.embedded ? { prefer: 'embedded' } : url === undefined ? {} : { url },
  }
}

/** `portcullis redis`: runs a local Redis with the REST API of Upstash, for an app on Node. */
import type { Command } from 'commander'
import { portNumber } from '../arguments.ts'
import { offlineCommand } from '../command.ts'

/** The same as that of `npm run upstash-rest`. */
const DEFAULT_PORT = 8079

interface RedisOptions {
  readonly port: number
  readonly json?: boolean
}

const HELP = `
Runs a Redis and, on 127.0.0.1 only, a server with the REST API of Upstash over it. Needs neither wrangler
nor a project. Prints two lines for .env when it is ready; progress goes to stderr. With --json, stdout gets
one object with the URL and the token. Ctrl-C stops both. A Redis that the command started
then loses its data.

The command uses the Redis at REDIS_URL. Without this variable it starts redis-server from the PATH, or
js-redis-server from npm.

Callers must present a token. It is the first of these:
  UPSTASH_REDIS_REST_TOKEN of the environment
  UPSTASH_REDIS_REST_TOKEN of .env in this folder, if UPSTASH_REDIS_REST_URL there is on this machine
  a new random token

Exit codes: 0 stopped, 1 no Redis or the port is in use, 2 wrong usage.`

export function addRedisCommand(program: Command): void {
  offlineCommand(program, {
    name: 'redis',
    does: 'run a local Redis with the REST API of Upstash, for an app on Node',
    examples: ['portcullis redis', 'portcullis redis --port 8080', 'portcullis redis --json'],
  })
    .option('--port <number>', 'port to listen on, 0 for a free one', portNumber, DEFAULT_PORT)
    .addHelpText('after', HELP)
    .action(async ({ port, json = false }: RedisOptions) => {
      const { serveRedis } = await import('../serve-redis.ts')
      await serveRedis({ port, json, env: process.env, folder: process.cwd() })
    })
}

/** `portcullis redis`: runs a local Redis with the REST API of Upstash, and moves a Redis to a cluster. */
import type { Command } from '@commander-js/extra-typings'
import { portNumber } from '../arguments.ts'
import { offlineCommand } from '../command.ts'

/** The same as that of `npm run upstash-rest`. */
const DEFAULT_PORT = 8079

const HELP = `
Runs a Redis and, on 127.0.0.1 only, a server with the REST API of Upstash over it. Needs neither wrangler
nor a project. Prints two lines for .env when it is ready; progress goes to stderr, with REDIS_URL for an app over
sockets and for a gateway on Node. With --json, stdout gets one object with the URLs and the token. Ctrl-C stops both. A Redis that the command started
then loses its data.

The command uses the Redis at REDIS_URL. Without this variable it starts redis-server from the PATH, or
js-redis-server from npm.

Callers must present a token. It is the first of these:
  UPSTASH_REDIS_REST_TOKEN of the environment
  UPSTASH_REDIS_REST_TOKEN of .env in this folder, if UPSTASH_REDIS_REST_URL there is on this machine
  a new random token

Exit codes: 0 stopped, 1 no Redis or the port is in use, 2 wrong usage.`

const IMPORT_HELP = `
Copies the keys of the gateways from the Redis at REDIS_URL_FROM to the cluster at REDIS_URL, and changes
nothing at the source. Repeat it as often as you like while gateways run on the source: it makes the cluster
equal to the source. What changes with each request, such as windows of limits, is copied by --final only.

  1. portcullis redis import            while the gateways run
  2. stop all gateways on the source
  3. portcullis redis import --final    copies the rest, and ends the import
  4. start the gateways with REDIS_URL of the cluster

Environment:
  REDIS_URL_FROM  the standalone Redis, or its Sentinels
  REDIS_URL       the cluster, redis+cluster://host:port/?lanes=64
  REDIS_PREFIX, REDIS_FENCE_MS, REDIS_REPLICAS_ACKED, REDIS_EVICTION as for a gateway

Prints counts, and neither keys nor values. docs/redis-cluster.md describes what is copied.

Exit codes: 0 done, 1 refused, or the source still changes (--final), 2 wrong usage, 3 no answer (repeat it).`

export function addRedisCommand(program: Command): void {
  const redis = offlineCommand(program, {
    name: 'redis',
    does: 'run a local Redis with the REST API of Upstash, for an app on Node',
    examples: ['portcullis redis', 'portcullis redis --port 8080', 'portcullis redis --json'],
  })
    .option('--port <number>', 'port to listen on, 0 for a free one', portNumber, DEFAULT_PORT)
    .addHelpText('after', HELP)
    .action(async ({ port, json = false }) => {
      const { serveRedis } = await import('../serve-redis.ts')
      await serveRedis({ port, json, env: process.env, folder: process.cwd() })
    })
  offlineCommand(redis, {
    name: 'import',
    does: 'copy the keys of a standalone Redis to a cluster',
    examples: [
      'portcullis redis import --dry-run',
      'portcullis redis import',
      'portcullis redis import --final --json',
    ],
  })
    .option('--from <url>', 'the standalone Redis, without a password (default: REDIS_URL_FROM)')
    .option('--final', 'the gateways are stopped: copy everything, and end the import')
    .option('--dry-run', 'only count what would be copied')
    .option('--merge', 'accept a cluster with keys of another origin, and remove none of them')
    .addHelpText('after', IMPORT_HELP)
    .action(async ({ from, final = false, dryRun = false, merge = false, json = false }) => {
      const { importRedis } = await import('../import-redis.ts')
      await importRedis({ ...(from && { from }), final, dryRun, merge, json, env: process.env })
    })
}

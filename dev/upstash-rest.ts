/**
 * `npm run upstash-rest`: runs only the local Upstash REST server. See `upstash-rest/server.ts`.
 */

import { startRedis } from './redis.ts'
import { readOptions, USAGE } from './upstash-rest/options.ts'
import { startUpstashRest } from './upstash-rest/server.ts'

async function main(): Promise<void> {
  const options = readOptions(process.argv.slice(2), process.env)
  if (options === 'help') {
    console.log(USAGE)
    return
  }
  const { port, token } = options
  const redis = await startRedis(options.redis)
  const server = await startUpstashRest({ port, token, redis }).catch(async (error) => {
    await redis.close()
    throw error
  })
  let stopping = false
  async function stop(): Promise<void> {
    // Under npm, Ctrl-C arrives twice: from the terminal and from npm.
    if (stopping) return
    stopping = true
    await server.close()
    await redis.close()
    process.exit(0)
  }
  process.on('SIGINT', stop)
  process.on('SIGTERM', stop)
  console.log(`Upstash REST is ready on ${server.url} (Redis: ${redis.kind})`)
}

main().catch((error: Error) => {
  console.error(`upstash-rest: ${error.message}`)
  process.exit(1)
})

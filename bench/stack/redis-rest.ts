/** Process with Redis behind the local Upstash REST server. It counts the calls. */
import { subscribe } from 'node:diagnostics_channel'
import type { IncomingMessage } from 'node:http'
import { startRedis } from '../../dev/redis.ts'
import { startUpstashRest } from '../../dev/upstash-rest/server.ts'
import { serveParent } from '../processes/child.ts'
import type { RedisCounts } from './backends.ts'

/** Keys of metrics and audit events, which the gateway writes after its responses. */
const BEHIND_ANSWERS = /"pc:(?:metrics|audit):/

const counts = { calls: 0 } satisfies RedisCounts

// A diagnostics channel, so that counting needs no proxy between the gateway and Redis.
subscribe('http.server.request.start', (message) => {
  const { request } = message as { request: IncomingMessage }
  let body = ''
  // Receives the chunks that the server reads. It does not read from the socket itself.
  request.on('data', (chunk: Buffer) => {
    body += chunk.toString('latin1')
  })
  request.on('end', () => {
    if (!BEHIND_ANSWERS.test(body)) counts.calls++
  })
})

const redis = await startRedis()
const rest = await startUpstashRest({ port: 0, token: process.env.REST_TOKEN ?? '', redis })
serveParent(
  { url: rest.url, kind: redis.kind, directUrl: redis.url },
  () => counts,
  async () => {
    await rest.close()
    await redis.close()
  },
)

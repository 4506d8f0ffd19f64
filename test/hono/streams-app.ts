/** A guarded app with handlers that stream, in workerd and in Node. */
import { Hono } from 'hono'
import { stream, streamSSE } from 'hono/streaming'
import { portcullis } from '../../src/hono/index.ts'
import { AUDIENCE, ISSUER } from '../harness/issuer.ts'

interface Env {
  readonly UPSTASH_REDIS_REST_URL: string
  readonly UPSTASH_REDIS_REST_TOKEN: string
  readonly JWKS: string
}

const PAUSE_MS = 50
const TICKS = 1_000

const guard = portcullis((env: Env) => ({
  issuers: [{ issuer: ISSUER, audience: AUDIENCE, jwks: JSON.parse(env.JWKS) }],
  redis: {
    url: env.UPSTASH_REDIS_REST_URL,
    token: env.UPSTASH_REDIS_REST_TOKEN,
    timeoutMs: 5_000,
  },
  recheckSeconds: 1,
  // A test process that the machine pauses counts as an outage of Redis.
  recheckGraceSeconds: 3,
}))

/** A body that a handler makes without a library. */
function ticking(): ReadableStream<Uint8Array> {
  const tick = new TextEncoder().encode('tick\n')
  return new ReadableStream({
    async pull(controller) {
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
      controller.enqueue(tick)
    },
  })
}

const app = new Hono()
  .use(guard)
  .get('/events', guard.authenticated(), (c) =>
    streamSSE(c, async (events) => {
      for (let count = 0; count < TICKS && !events.aborted; count++) {
        await events.writeSSE({ data: 'tick' })
        await events.sleep(PAUSE_MS)
      }
    }),
  )
  .get('/stream', guard.authenticated(), (c) =>
    stream(c, async (body) => {
      for (let count = 0; count < TICKS && !body.aborted; count++) {
        await body.write('tick\n')
        await body.sleep(PAUSE_MS)
      }
    }),
  )
  .post('/body', guard.authenticated(), () => new Response(ticking(), { status: 201 }))
  .get('/undeclared', (c) => c.body(ticking(), 200, { 'X-Own': 'kept' }))
  .get('/public', guard.public(), (c) => c.body(ticking()))
  .get('/text', guard.authenticated(), (c) => c.text('whole'))
  .get('/json', guard.authenticated(), (c) => c.json({ whole: true }))

export default app

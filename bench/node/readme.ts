/** The stack as the READMEs of its libraries show it, on Node: the Worker of `peers`, with Hono's server. */
import { serve } from '@hono/node-server'
import worker from '../peers/handwritten/worker.ts'
import { HOST, PORT } from './environment.ts'

const context = { waitUntil() {}, passThroughOnException() {}, props: {} } as never
serve({
  port: PORT,
  hostname: HOST,
  fetch: (request: Request) => worker.fetch(request as never, process.env as never, context),
})

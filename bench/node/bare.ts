/** A proxy on Node that decides nothing: `node:http` and undici. */
import { createServer } from 'node:http'
import { HOST, PORT } from './environment.ts'
import { forward, headersOf } from './forward.ts'

createServer((incoming, outgoing) => forward(incoming, outgoing, headersOf(incoming))).listen(
  PORT,
  HOST,
)

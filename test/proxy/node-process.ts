/** Serves the test Worker of this folder as `serve` of `portcullis/node` serves a gateway. */
import { createServer } from 'node:http'
import { createBackgroundWork } from '../../src/node/background-work.ts'
import { createNodeOrigin } from '../../src/node/origin.ts'
import { createListeners } from '../../src/node/request-listener.ts'
import { LIMITS } from '../../src/node/serve.ts'
import { build } from './worker.ts'

const { ORIGIN_URL = '', PORT } = process.env
const app = build({ ORIGIN_URL }, createNodeOrigin({ url: ORIGIN_URL }))
const gateway = {
  fetch: async (request: Request, bindings?: unknown, context?: unknown) =>
    app.fetch(request, bindings as never, context as ExecutionContext),
}
const http = createServer(LIMITS, createListeners(gateway, createBackgroundWork()).request)
http.maxHeadersCount = 0
http.listen(Number(PORT), '127.0.0.1', () => console.error('listening'))

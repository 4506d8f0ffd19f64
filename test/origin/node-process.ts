/** Serves an entry module as `serve` of `portcullis/node` serves a gateway. */
import { createServer } from 'node:http'
import { createBackgroundWork } from '../../src/runtimes/node/background-work.ts'
import { createListeners } from '../../src/runtimes/node/request-listener.ts'
import { nodeRuntime } from '../../src/runtimes/node/runtime.ts'
import { LIMITS } from '../../src/runtimes/node/serve.ts'
import { refuseUnreadable } from '../../src/runtimes/node/unreadable-requests.ts'
import { latestResponses, onHandedOver } from '../../src/runtimes/node/upgrades.ts'
import type { Build } from './entry.ts'

const { ENTRY = '', PORT, ...variables } = process.env
const { default: worker } = (await import(ENTRY)) as { default: { build: Build<object> } }
const app = worker.build(variables, nodeRuntime(variables))
const gateway = {
  fetch: async (request: Request, bindings?: unknown, context?: unknown) =>
    app.fetch(request, bindings as never, context as ExecutionContext),
}
const listeners = createListeners(gateway, createBackgroundWork())
const http = createServer(LIMITS, listeners.request)
const latest = latestResponses(http)
onHandedOver(http, latest, listeners)
refuseUnreadable(http, latest)
http.maxHeadersCount = 0
http.listen(Number(PORT), '127.0.0.1', () => console.error('listening'))

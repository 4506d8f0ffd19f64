/** A Worker that traces its requests, as `createGateway` does around all other stages. */
import { Hono } from 'hono'
import { createSpanExporter } from '../../../src/features/otlp/exporter.ts'
import { traceRequests } from '../../../src/features/otlp/trace-requests.ts'
import { audit } from '../../../src/middleware/audit.ts'
import { stage } from '../../../src/middleware/in-order.ts'
import { requestId } from '../../../src/middleware/request-id.ts'

interface Env {
  readonly COLLECTOR: string
}

let app: ReturnType<typeof build> | undefined

function build({ COLLECTOR: url }: Env) {
  return new Hono()
    .use(requestId(), traceRequests({ exporter: createSpanExporter({ url }) }))
    .use(audit({ sink: { record() {} } }))
    .use(stage('limitBody', (_, next) => next()))
    .get('/', (c) => c.text('ok'))
}

export default {
  fetch(request, env, context) {
    app ??= build(env)
    return app.fetch(request, env, context)
  },
} satisfies ExportedHandler<Env>

/** The inspection of the MCP example as a Worker that returns what it admitted. */

import { Hono } from 'hono'
import policy from '../../examples/mcp/policy.ts'
import { signatures } from '../../src/features/signatures.ts'
import type { Principal } from '../../src/index.ts'
import {
  type BodyVariables,
  bodyOf,
  createAuthorizer,
  inspect,
  limitBody,
  problemHandler,
} from '../../src/parts.ts'
import { readerOf } from './reader.ts'

const app = new Hono<{ Variables: BodyVariables & { 'portcullis.principal': Principal } }>()
app.onError(problemHandler())
app.use(limitBody({ maxBytes: 65_536 }))
app.use(async (c, next) => {
  c.set('portcullis.principal', readerOf('reader'))
  await next()
})
const authorizer = createAuthorizer(policy.roles)
app.post('/mcp', inspect({ ...policy.routes[0]?.inspect, authorizer }), (c) =>
  c.body(bodyOf(c) as Uint8Array<ArrayBuffer>),
)
app.all('/enforced', inspect({ signatures: signatures({ mode: 'enforce' }) }), (c) =>
  c.text('reached'),
)
app.all('/form', inspect({}), async (c) => c.body(await new Response(bodyOf(c)).arrayBuffer()))

export default app

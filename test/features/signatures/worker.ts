/** The inspection of JSON-RPC as a Worker that returns what it admitted. */

import { Hono } from 'hono'
import * as z from 'zod'
import { signatures } from '../../../src/features/signatures/index.ts'
import type { Principal } from '../../../src/index.ts'
import {
  type BodyVariables,
  bodyOf,
  createAuthorizer,
  inspect,
  limitBody,
  problemHandler,
} from '../../../src/parts.ts'
import { readerOf } from '../../inspection/reader.ts'

const app = new Hono<{ Variables: BodyVariables & { 'portcullis.principal': Principal } }>()
app.onError(problemHandler())
app.use(limitBody({ maxBytes: 65_536 }))
app.use(async (c, next) => {
  c.set('portcullis.principal', readerOf('reader'))
  await next()
})
const authorizer = createAuthorizer(new Map([['reader', ['books:read']]]))
const jsonRpc = {
  methods: { ping: true, 'tools/call': true },
  tools: {
    search_books: {
      permission: 'books:read',
      arguments: z.strictObject({ text: z.string().min(1) }),
    },
    add: { arguments: z.strictObject({ n: z.number() }) },
    remove_book: { permission: 'books:delete', arguments: z.strictObject({ isbn: z.string() }) },
  },
} as const
app.post('/mcp', inspect({ jsonRpc, authorizer }), (c) =>
  c.body(bodyOf(c) as Uint8Array<ArrayBuffer>),
)
app.all('/enforced', inspect({ signatures: signatures({ mode: 'enforce' }) }), (c) =>
  c.text('reached'),
)
app.all('/form', inspect({}), async (c) => c.body(await new Response(bodyOf(c)).arrayBuffer()))

export default app

import { Hono } from 'hono'
import { expect, test } from 'vitest'
import { clientAddress } from '../../src/middleware/client-address.ts'
import { forwardHeadersOf, type GatewayVariables } from '../../src/middleware/context.ts'
import { receivedHeaders } from '../../src/middleware/request-headers.ts'
import { requestId } from '../../src/middleware/request-id.ts'
import { sanitizeHeaders } from '../../src/middleware/sanitize-headers.ts'

test('a header that another middleware removed is not forwarded [S54]', async () => {
  const app = new Hono<{ Variables: GatewayVariables }>()
  app.use(requestId(), async (c, next) => {
    const headers = new Headers(c.req.raw.headers)
    headers.delete('X-Tenant')
    headers.set('CF-Connecting-IP', '203.0.113.7')
    c.req.raw = new Request(c.req.raw, { headers })
    await next()
  })
  app.use(sanitizeHeaders(), clientAddress())
  app.get('/', (c) => c.json([[...forwardHeadersOf(c)], c.get('portcullis.clientAddress')]))
  const response = await app.request('/', {
    headers: { 'X-Tenant': 'acme', 'X-Kept': '1', 'CF-Connecting-IP': '198.51.100.1' },
  })
  expect(await response.json()).toEqual([[['x-kept', '1']], '203.0.113.7'])
})

test('repeated headers are joined into one list', async () => {
  const app = new Hono()
  app.get('/', (c) => c.json(Object.fromEntries(receivedHeaders(c))))
  const headers: [string, string][] = [
    ['Accept', 'text/html'],
    ['accept', 'text/plain'],
    ['Set-Cookie', 'a=1'],
    ['Set-Cookie', 'b=2'],
  ]
  const response = await app.request('/', { headers })
  expect(await response.json()).toEqual({
    accept: 'text/html, text/plain',
    'set-cookie': 'a=1, b=2',
  })
})

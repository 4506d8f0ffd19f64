/** Tests of a guarded app with vitest. They need neither Redis nor an identity provider. */
import { Hono } from 'hono'
import { portcullis } from 'portcullis/hono'
import { createIssuer, memoryStore } from 'portcullis/testing'
import { expect, test } from 'vitest'

const issuer = await createIssuer()

/** An app takes its guard's options from the outside, so that a test can replace the store. */
function createApp(redis: ReturnType<typeof memoryStore>) {
  const guard = portcullis({
    issuers: [issuer.entry],
    redis,
    roles: { reader: ['notes:read'] },
    limits: { standard: '2/min' },
  })
  return new Hono().use(guard).get('/notes', guard.require('notes:read'), (c) => c.json([]))
}

test('a reader has two requests a minute', async () => {
  const store = memoryStore()
  const app = createApp(store)
  const headers = { Authorization: `Bearer ${await issuer.token({ roles: ['reader'] })}` }
  const status = async () => (await app.request('/notes', { headers })).status
  expect([await status(), await status(), await status()]).toEqual([200, 200, 429])
  store.advanceSeconds(60)
  expect(await status()).toBe(200)
})

test('a request without a token is refused', async () => {
  const response = await createApp(memoryStore()).request('/notes')
  expect(response.status).toBe(401)
})

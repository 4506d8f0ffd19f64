/** Tokens that were exchanged before: what they may become in further hands. */
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { EXCHANGE, startGateway, type TestGateway } from './gateway.ts'

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.close())

describe.each(['jwt', 'opaque'] as const)(
  "a client's own token, exchanged as %s",
  (tokenFormat) => {
    test('S38: begins no session in the second exchange either, and lives no longer', async () => {
      const service = await gateway.createClient({ roles: ['reader'] })
      const own = (await gateway.token(service, { grant_type: 'client_credentials' })).body
      const first = await gateway.createClient({ tokenFormat })
      const narrow = await gateway.createClient({ grants: [EXCHANGE], tokenFormat })
      for (const client of [first, narrow]) {
        const once = (await gateway.exchange(client, own.access_token)).body
        expect(once).not.toHaveProperty('refresh_token')
        for (const next of [first, narrow]) {
          const twice = await gateway.exchange(next, once.access_token)
          expect(twice.status, twice.text).toBe(200)
          expect(twice.body).not.toHaveProperty('refresh_token')
          expect(twice.body.expires_in).toBeLessThanOrEqual(own.expires_in)
          expect((await gateway.call(twice.body.access_token)).status).toBe(200)
        }
      }
      expect(decodeJwt(own.access_token).sub).toBe(service.id)
    })
  },
)

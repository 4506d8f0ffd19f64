/** Repeated exchanges: tokens that are the result of an exchange. */
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { EXCHANGE, startGateway, type TestGateway } from './gateway.ts'

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.close())

const OWN = { grant_type: 'client_credentials' }

describe.each(['jwt', 'opaque'] as const)(
  'a token that a client got for itself, exchanged as %s',
  (tokenFormat) => {
    test('begins no session in the second exchange either, and ends no later [S38]', async () => {
      const service = await gateway.createClient({ roles: ['reader'] })
      const own = (await gateway.token(service, OWN)).body
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

describe('a client of a tenant [S38]', () => {
  const tokensOf = async (tenant: string | undefined) => [
    await gateway.login({ claims: { tenant } }),
    (await gateway.token(await gateway.createClient({ roles: ['reader'], tenant }), OWN)).body
      .access_token,
  ]

  test.each(['globex', 'Acme', undefined])(
    'gets no token for a subject token of tenant %s',
    async (tenant) => {
      const client = await gateway.createClient({ tenant: 'acme' })
      for (const subjectToken of await tokensOf(tenant)) {
        const reply = await gateway.exchange(client, subjectToken)
        expect(reply.status).toBe(400)
        expect(reply.body.error).toBe('invalid_request')
        const reason = 'invalid_request:subject_token_tenant'
        expect(gateway.events.at(-1)).toMatchObject({ decision: 'deny', reason })
        expect(await gateway.redis.direct.keys('pc:*refresh:*')).toEqual([])
      }
    },
  )

  test('acts for its own tenant, and a client without a tenant acts for all', async () => {
    for (const [tenant, ofToken] of [
      ['acme', 'acme'],
      [undefined, 'acme'],
      [undefined, undefined],
    ]) {
      const client = await gateway.createClient({ tenant })
      for (const subjectToken of await tokensOf(ofToken)) {
        const reply = await gateway.exchange(client, subjectToken)
        expect(reply.status, reply.text).toBe(200)
        expect(decodeJwt(reply.body.access_token).tenant).toBe(ofToken)
      }
    }
  })
})

/** Cutoffs that the lane of a session does not have yet, because a gateway could not reach it. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { revokedBeforeKey } from '../../../src/access/revocation/revocation.ts'
import { DEFAULT_KEYS } from '../../../src/redis/keys.ts'
import { ISSUER } from '../../harness/issuer.ts'
import { EXCHANGE, PUBLIC_URL, startGateway, type TestGateway } from './gateway.ts'

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway({ lanes: 4 })
})
afterAll(() => gateway?.close())

test.each([
  ['subject', ISSUER, 'anne'],
  ['tenant', ISSUER, 'acme'],
  ['client', PUBLIC_URL, undefined],
] as const)(
  'no refresh issues a token that is newer than the cutoff of a %s in the control lane [S33]',
  async (kind, issuer, value) => {
    const client = await gateway.createClient({ grants: [EXCHANGE, 'refresh_token'] })
    const login = await gateway.login({
      claims: { sub: 'anne', tenant: 'acme', roles: ['reader'] },
    })
    const { body } = await gateway.exchange(client, login)
    const first = await gateway.refresh(client, body.refresh_token)
    expect(first.status, first.text).toBe(200)
    const name = await revokedBeforeKey(DEFAULT_KEYS, kind, issuer, value ?? client.id)
    // What a gateway leaves that cannot reach the lane. Another one completes it later.
    await gateway.redis.direct.set(name, Math.floor(Date.now() / 1000), 'EX', 60)
    const second = await gateway.refresh(client, first.body.refresh_token)
    await gateway.redis.direct.del(name)
    expect([second.status, second.body.error]).toEqual([400, 'invalid_grant'])
    // The refused token was not used.
    expect((await gateway.refresh(client, first.body.refresh_token)).status).toBe(200)
  },
)

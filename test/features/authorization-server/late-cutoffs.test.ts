/** Revocations that only the control lane has yet, or only the lane of their subject. */
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { revokedBeforeKey, revokedTokenKey } from '../../../src/access/revocation/revocation.ts'
import { tokenIdHash } from '../../../src/access/token-id.ts'
import { DEFAULT_KEYS } from '../../../src/redis/keys.ts'
import { laneIndex } from '../../../src/redis/lanes.ts'
import { ISSUER } from '../../harness/issuer.ts'
import { namesInLanes } from '../../harness/lanes.ts'
import { EXCHANGE, PUBLIC_URL, startGateway, type TestClient, type TestGateway } from './gateway.ts'

const LANES = 4

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway({ lanes: LANES })
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

const PLACES = {
  'the control lane': (name: string) => name,
  'the lane of the subject': (name: string) =>
    namesInLanes(name, LANES)[1 + laneIndex('anne', LANES)] ?? '',
}

type Held = { readonly access: string; readonly refresh: string }

const READERS = {
  'introspection of an access token': async (client: TestClient, { access }: Held) =>
    (await gateway.introspect(client, access)).body.active,
  'introspection of a refresh token': async (client: TestClient, { refresh }: Held) =>
    (await gateway.introspect(client, refresh)).body.active,
  'an exchange': async (client: TestClient, { access }: Held) =>
    (await gateway.exchange(client, access)).status === 200,
  'a refresh': async (client: TestClient, { refresh }: Held) =>
    (await gateway.refresh(client, refresh)).status === 200,
}

/** Revocations that end what a client holds, by the names of their keys. */
const REVOCATIONS = {
  'of the token': async ({ access }: Held) => {
    const { jti = '' } = decodeJwt(access)
    return revokedTokenKey(DEFAULT_KEYS, await tokenIdHash(PUBLIC_URL, jti))
  },
  'of the session': ({ access }: Held) =>
    revokedBeforeKey(DEFAULT_KEYS, 'session', PUBLIC_URL, String(decodeJwt(access).sid)),
  'of the subject': () => revokedBeforeKey(DEFAULT_KEYS, 'subject', ISSUER, 'anne'),
}

test.each(
  Object.keys(REVOCATIONS).flatMap((kind) =>
    Object.keys(READERS)
      .filter((reader) => kind !== 'of the token' || !reader.includes('refresh'))
      .flatMap((reader) => Object.keys(PLACES).map((place) => [kind, reader, place] as const)),
  ),
)('a revocation %s counts for %s if only %s has it', async (kind, reader, place) => {
  const client = await gateway.createClient({ grants: [EXCHANGE, 'refresh_token'] })
  const login = await gateway.login({ claims: { sub: 'anne', roles: ['reader'] } })
  const { body } = await gateway.exchange(client, login)
  const held: Held = { access: body.access_token, refresh: body.refresh_token }
  const read = READERS[reader as keyof typeof READERS]
  const name = await REVOCATIONS[kind as keyof typeof REVOCATIONS](held)
  const key = PLACES[place as keyof typeof PLACES](name)
  await gateway.redis.direct.set(key, Math.floor(Date.now() / 1000), 'EX', 60)
  const isAlive = await read(client, held)
  await gateway.redis.direct.del(key)
  expect([isAlive, await read(client, held)]).toEqual([false, true])
})

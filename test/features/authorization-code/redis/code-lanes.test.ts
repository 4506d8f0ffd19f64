/** Requests, consents and single uses on a cluster: in which lanes they are, and where earlier ones are found. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { withBroadcast } from '../../../../src/access/revocation/redis/broadcast.ts'
import { Unavailable } from '../../../../src/errors.ts'
import type { Consent } from '../../../../src/features/authorization-code/consent.ts'
import { createConsents } from '../../../../src/features/authorization-code/redis/consents.ts'
import { createWaitingRequests } from '../../../../src/features/authorization-code/redis/waiting-requests.ts'
import { createClientLogins } from '../../../../src/features/authorization-server/redis/client-logins.ts'
import { createGrantStore } from '../../../../src/features/authorization-server/redis/grant-store.ts'
import type { RedisConnection } from '../../../../src/redis/connection.ts'
import { GATEWAY, IDP, nowSeconds } from '../../../access/admission/callers.ts'
import { apartFrom, lanesOver } from '../../../access/admission/redis/lanes.ts'
import { startTestRedis, type TestRedis } from '../../../harness/redis.ts'
import { overResp } from '../../../harness/redis-protocols.ts'

let redis: TestRedis
let server: RedisConnection
beforeAll(async () => {
  redis = await startTestRedis()
  server = overResp(redis)
})
beforeEach(() => redis.direct.flushall())
afterAll(() => redis.close())

/** Creates a gateway with 64 lanes. `away` is the prefix of a lane that does not answer. */
function gateway({ inControl = false, away }: { inControl?: boolean; away?: string } = {}) {
  const sent: string[] = []
  const lanes = withBroadcast(
    lanesOver(
      server,
      64,
      ({ keys }, pass) => {
        sent.push(keys.prefix)
        return keys.prefix === away
          ? Promise.reject(new Unavailable('redis', 'unreachable'))
          : pass()
      },
      inControl,
    ),
  )
  const logins = createClientLogins({ redis: lanes, configured: [], publicUrl: GATEWAY })
  return {
    ...{ lanes, sent, logins },
    waiting: createWaitingRequests(lanes),
    grants: createGrantStore(lanes),
    consents: createConsents(lanes, Date.now),
    prefixOf: (value: string) => lanes.lanes.of(value).keys.prefix,
  }
}

const SIDES = [
  [true, false],
  [false, true],
] as const

describe('a single use on a cluster', () => {
  test('of a DPoP proof at the token endpoint is in the lane of its hash, once for all gateways', async () => {
    const own = gateway()
    const proof = { thumbprint: 'x', replayId: 'proof-1', replayTtlSeconds: 85 }
    expect(await own.grants.consult({ keys: [], proof })).toMatchObject({ proofIsNew: true })
    expect(own.sent).toEqual([own.prefixOf('proof-1')])
    expect(await gateway().grants.consult({ keys: [], proof })).toMatchObject({ proofIsNew: false })
    const [key = ''] = await redis.direct.keys('*dpop:proof-1')
    expect(await redis.direct.ttl(key)).toBeGreaterThan(80)
  })

  test('of a proof is recorded in the round that reads cutoffs, and an outage of either is 503 [R06]', async () => {
    const { grants, lanes, prefixOf } = gateway()
    const query = (replayId: string) => ({
      keys: [`${lanes.keys.revokedBefore}client:i:app`],
      proof: { thumbprint: 'x', replayId, replayTtlSeconds: 85 },
    })
    await redis.direct.set(query('').keys[0] ?? '', '7')
    expect(await grants.consult(query('proof-1'))).toMatchObject({
      values: ['7'],
      proofIsNew: true,
    })
    for (const away of [lanes.keys.prefix, prefixOf('proof-2')])
      await expect(gateway({ away }).grants.consult(query('proof-2'))).rejects.toThrow(Unavailable)
  })

  test.each(SIDES)(
    'is found by gateways with and without credentials=control',
    async (one, other) => {
      const proof = { thumbprint: 'x', replayId: 'proof-1', replayTtlSeconds: 85 }
      const [first, second] = [gateway({ inControl: one }), gateway({ inControl: other })]
      expect(await first.grants.consult({ keys: [], proof })).toMatchObject({ proofIsNew: true })
      expect(await second.grants.consult({ keys: [], proof })).toMatchObject({ proofIsNew: false })
      const login = { clientId: 'app', address: '192.0.2.1' }
      const use = { remember: false, use: { id: 'assertion', ttlSeconds: 60 } }
      expect(await first.logins.succeeded(login, use)).toBe(true)
      expect(await second.logins.succeeded(login, use)).toBe(false)
    },
  )
})

describe('the revocations of a presented token on a cluster', () => {
  test('are read in the control lane and in that of its subject at once, and the later one counts', async () => {
    const { grants, lanes, sent, prefixOf } = gateway()
    const names = ['a', 'b', 'c', 'd'].map((name) => `cutoff:${name}`)
    const [a, b, c] = names
    const control = { [`${lanes.keys.prefix}${a}`]: '10', [`${lanes.keys.prefix}${b}`]: '9' }
    const own = { [`${prefixOf('anne')}${b}`]: '10', [`${prefixOf('anne')}${c}`]: '7' }
    await redis.direct.mset({ ...control, ...own })
    const keys = names.map((name) => lanes.keys.prefix + name)
    expect((await grants.consult({ keys, subject: 'anne' })).values).toEqual([
      '10',
      '10',
      '7',
      null,
    ])
    expect(sent.sort()).toEqual([lanes.keys.prefix, prefixOf('anne')].sort())
    for (const away of [lanes.keys.prefix, prefixOf('anne')])
      await expect(gateway({ away }).grants.consult({ keys, subject: 'anne' })).rejects.toThrow(
        Unavailable,
      )
    // A text that is not a second must not count as an earlier one.
    await redis.direct.set(`${prefixOf('anne')}${a}`, 'x')
    await expect(grants.consult({ keys, subject: 'anne' })).rejects.toThrow(Unavailable)
  })
})

describe('a pushed authorization request on a cluster', () => {
  const request = {
    ...{ kind: 'pushed' as const, client: 'app' },
    parameters: { response_type: 'code', client_id: 'app' },
  }
  type Request = Parameters<ReturnType<typeof gateway>['waiting']['put']>[1]

  test('is in the lane of its hash, and taken once', async () => {
    const own = gateway()
    await own.waiting.put('hash', request as unknown as Request, 60)
    expect(await own.waiting.replace('hash', request as unknown as Request, 60)).toBe(true)
    expect(own.sent).toEqual([own.prefixOf('hash'), own.prefixOf('hash')])
    expect(await own.waiting.replace('other', request as unknown as Request, 60)).toBe(false)
    expect(await redis.direct.keys('*other*')).toEqual([])
  })

  test('of an earlier version is found in the control lane', async () => {
    const earlier = gateway({ inControl: true })
    await earlier.waiting.put('hash', request as unknown as Request, 60)
    expect(await redis.direct.keys('pc:{c}:authorization-request:*')).toHaveLength(1)
    expect(await gateway().waiting.replace('hash', request as unknown as Request, 60)).toBe(true)
  })
})

describe('the consents of a user on a cluster', () => {
  const user = { issuer: IDP, subject: 'anne', tenant: 'acme' }
  const consentOf = (client: string): Consent => ({
    ...{ client, name: client, redirectUri: 'https://app.test/', scopes: [], audiences: [] },
    allowedAtSeconds: nowSeconds(),
  })
  const changeOf = (id: string, isRepeated = false) => ({
    session: { id, expiresAtSeconds: nowSeconds() + 600 },
    ...{ ended: [], isRepeated },
  })

  test('are in the lane of its subject', async () => {
    const own = gateway()
    await own.consents.allow(user, consentOf('app'), changeOf('s1'))
    for (const name of await redis.direct.keys('*'))
      expect(name.startsWith(own.prefixOf('anne'))).toBe(true)
    expect(await own.consents.find(user, 'app')).toMatchObject({ client: 'app' })
    expect(new Set(own.sent)).toEqual(new Set([own.prefixOf('anne')]))
  })

  test('of an earlier version are listed, used and forgotten with the others', async () => {
    const earlier = gateway({ inControl: true }).consents
    await earlier.allow(user, consentOf('old'), changeOf('s1'))
    const { consents } = gateway()
    await consents.allow(user, consentOf('app'), changeOf('s2'))
    expect((await consents.list(user)).map(({ client }) => client).sort()).toEqual(['app', 'old'])
    expect(await consents.allow(user, consentOf('old'), changeOf('s3', true))).toBe(true)
    expect(await consents.allow(user, consentOf('none'), changeOf('s4', true))).toBe(false)
    const sessions = await consents.sessions(user, 'old')
    expect(sessions.map(({ id }) => id).sort()).toEqual(['s1', 's3'])
    expect(await consents.forget(user, 'old', sessions.slice(0, 1))).toBe('other_sessions')
    expect(await consents.forget(user, 'old', sessions)).toBe('forgotten')
    expect(await consents.find(user, 'old')).toBeUndefined()
    expect(await consents.allow(user, consentOf('old'), changeOf('s5', true))).toBe(false)
    expect(await consents.forget(user, 'old', [])).toBe('unknown')
  })

  test('sessions that have ended are forgotten in both lanes', async () => {
    await gateway({ inControl: true }).consents.allow(user, consentOf('app'), changeOf('s1'))
    const { consents } = gateway()
    const ended = await consents.sessions(user, 'app')
    await consents.allow(user, consentOf('app'), { ...changeOf('s2'), ended })
    expect((await consents.sessions(user, 'app')).map(({ id }) => id)).toEqual(['s2'])
  })

  test('are complete or an error, while a lane is away [R06]', async () => {
    const { lanes, prefixOf } = gateway()
    for (const away of [lanes.keys.prefix, prefixOf('anne')]) {
      const { consents } = gateway({ away })
      await expect(consents.list(user)).rejects.toThrow(Unavailable)
      await expect(consents.sessions(user, 'app')).rejects.toThrow(Unavailable)
      await expect(consents.forget(user, 'app', [])).rejects.toThrow(Unavailable)
    }
    const away = prefixOf(apartFrom(lanes, ['anne'], 'other'))
    expect(await gateway({ away }).consents.list(user)).toEqual([])
  })
})

/** Events that a transmitter pushes: what they do, and what they cannot do. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createBanList } from '../../../src/access/abuse/redis/bans.ts'
import { Unavailable } from '../../../src/errors.ts'
import type { RedisConnection } from '../../../src/redis/connection.ts'
import { PUBLIC_URL } from '../../harness/gateway.ts'
import { createKey, ISSUER, REMOTE_ISSUER } from '../../harness/issuer.ts'
import { CAEP, EVENT_AUDIENCE, RISC, SSF, signEvent, userOf } from './transmitter.ts'
import { startWorld, type World } from './world.ts'

let world: World
let gateway: ReturnType<World['isolate']>
beforeAll(async () => {
  world = await startWorld()
  gateway = world.isolate()
})
afterAll(() => world?.close())
beforeEach(async () => {
  await world.redis.direct.flushall()
  gateway = world.isolate()
  world.reached.length = 0
})

const codeOf = async (response: Response) => ((await response.json()) as { code: string }).code
const SESSION_REVOKED = `${CAEP}session-revoked`
const fieldsOf = () => gateway.events.at(-1)?.fields

describe('an event', () => {
  test.each([
    SESSION_REVOKED,
    `${CAEP}credential-change`,
    `${CAEP}token-claims-change`,
    `${CAEP}assurance-level-change`,
    `${CAEP}device-compliance-change`,
    `${RISC}account-purged`,
    `${RISC}credential-compromise`,
    `${RISC}sessions-revoked`,
    `${RISC}account-disabled`,
  ])('%s refuses the next request of its subject, and of no other', async (type) => {
    const token = await world.token({ sub: 'alice' })
    const other = await world.token({ sub: 'bob' })
    expect((await gateway.read(token)).status).toBe(200)
    const response = await gateway.push(await world.event(type, userOf('alice')))
    expect([response.status, await response.text()]).toEqual([202, ''])
    const refused = await gateway.read(token)
    expect(refused.status).toBe(401)
    expect(world.reached).toHaveLength(1)
    expect((await world.isolate().read(token)).status).toBe(401)
    expect((await gateway.read(other)).status).toBe(200)
    const sameName = await world.token({ iss: REMOTE_ISSUER, sub: 'alice' }, world.remoteKey)
    expect((await gateway.read(sameName)).status).toBe(200)
  })

  test('about a disabled account bans it again after an operator ended the ban incompletely', async () => {
    const fresh = async () => world.token({ sub: 'alice', iat: Math.floor(Date.now() / 1000) + 3 })
    const disable = async () =>
      gateway.push(await world.event(`${RISC}account-disabled`, userOf('alice')))
    await disable()
    const [ban] = (await bans().list({ limit: 10 })).items
    // The replicas do not acknowledge the end. So the record is kept, for a repeated call.
    const { keys, send } = world.connection
    const withoutReplicas: RedisConnection = {
      keys,
      replicasAcked: 1,
      async send(commands, { acknowledgedBy, ...options } = {}) {
        const replies = await send(commands, options)
        if (acknowledgedBy !== undefined) throw new Unavailable('redis', 'timeout')
        return replies
      },
    }
    const ended = createBanList(withoutReplicas, Date.now).remove(ban?.id ?? '')
    await expect(ended).rejects.toThrow(Unavailable)
    expect((await disable()).status).toBe(202)
    const banned = await world.isolate().read(await fresh())
    expect([banned.status, await codeOf(banned)]).toEqual([403, 'banned'])
    const enabled = await gateway.push(await world.event(`${RISC}account-enabled`, userOf('alice')))
    expect(enabled.status).toBe(202)
    expect((await world.isolate().read(await fresh())).status).toBe(200)
  })

  test('about a disabled account refuses new tokens as well, until the account is enabled', async () => {
    const fresh = () => world.token({ sub: 'alice', iat: Math.floor(Date.now() / 1000) + 3 })
    await gateway.push(await world.event(`${RISC}account-disabled`, userOf('alice')))
    const banned = await gateway.read(await fresh())
    expect([banned.status, await codeOf(banned)]).toEqual([403, 'banned'])
    const [ban] = (await bans().list({ limit: 10 })).items
    expect(ban).toMatchObject({ value: 'alice', issuer: ISSUER, createdBy: 'portcullis' })
    const enabled = await gateway.push(await world.event(`${RISC}account-enabled`, userOf('alice')))
    expect(enabled.status).toBe(202)
    expect((await bans().list({ limit: 10 })).items).toEqual([])
    expect((await gateway.read(await fresh())).status).toBe(200)
  })

  const bans = () => createBanList(world.connection, Date.now)

  test('that a transmitter sends late does not disable an account that was enabled since', async () => {
    const at = Math.floor(Date.now() / 1000)
    const disabled = await world.event(
      `${RISC}account-disabled`,
      userOf('alice'),
      { claims: { iat: at - 60 } },
      { event_timestamp: at - 60 },
    )
    await gateway.push(await world.event(`${RISC}account-enabled`, userOf('alice')))
    expect((await gateway.push(disabled)).status).toBe(202)
    expect(fieldsOf()?.['signals.outcome']).toBe('stale')
    expect((await gateway.read(await world.token({ sub: 'alice', iat: at + 3 }))).status).toBe(200)
  })

  test('about a session refuses that session, and no other one of the user', async () => {
    const [token, other] = [
      await world.token({ sub: 'alice', sid: 's1' }),
      await world.token({ sub: 'alice', sid: 's2' }),
    ]
    const subject = {
      format: 'complex',
      user: userOf('alice'),
      session: { format: 'opaque', id: 's1' },
    }
    expect((await gateway.push(await world.event(SESSION_REVOKED, subject))).status).toBe(202)
    expect((await gateway.read(token)).status).toBe(401)
    expect((await gateway.read(other)).status).toBe(200)
  })

  test.each([
    ['opaque', { format: 'opaque', id: 'alice' }],
    [
      'aliases',
      { format: 'aliases', identifiers: [{ format: 'did', url: 'did:x' }, userOf('alice')] },
    ],
    ['complex without a format', { user: userOf('alice'), device: { format: 'opaque', id: 'd' } }],
    [
      'complex with a tenant',
      { format: 'complex', user: userOf('alice'), tenant: { format: 'opaque', id: 't' } },
    ],
    ['of early drafts', { subject_type: 'iss-sub', iss: ISSUER, sub: 'alice' }],
  ])('names its subject in the format %s', async (_, subject) => {
    const token = await world.token({ sub: 'alice' })
    await gateway.push(await world.event(SESSION_REVOKED, subject))
    expect((await gateway.read(token)).status).toBe(401)
  })

  test('with claims that are null, and so absent, has its effect', async () => {
    const token = await world.token({ sub: 'alice' })
    const claims = { exp: null, toe: null }
    const pushed = await gateway.push(
      await world.event(SESSION_REVOKED, userOf('alice'), { claims }),
    )
    expect([pushed.status, (await gateway.read(token)).status]).toEqual([202, 401])
  })

  test('of a transmitter of drafts names its subject inside', async () => {
    const token = await world.token({ sub: 'alice' })
    const claims = {
      sub_id: undefined,
      events: { [SESSION_REVOKED]: { subject: userOf('alice') } },
    }
    await gateway.push(await world.event(SESSION_REVOKED, undefined, { claims }))
    expect((await gateway.read(token)).status).toBe(401)
  })

  test('about a tenant refuses its members, and about a token that token', async () => {
    const member = await world.token({ sub: 'alice', tenant: 'north' })
    const other = await world.token({ sub: 'bob', tenant: 'south', jti: 'j1' })
    const tenant = { format: 'complex', tenant: { format: 'opaque', id: 'north' } }
    await gateway.push(await world.event(SESSION_REVOKED, tenant))
    expect([(await gateway.read(member)).status, (await gateway.read(other)).status]).toEqual([
      401, 200,
    ])
    const token = { format: 'jwt_id', iss: ISSUER, jti: 'j1' }
    await gateway.push(await world.event(SESSION_REVOKED, token))
    expect((await gateway.read(other)).status).toBe(401)
  })

  test.each([
    [`${CAEP}credential-change`, { change_type: 'create' }],
    [`${CAEP}assurance-level-change`, { change_direction: 'increase' }],
    [`${CAEP}device-compliance-change`, { current_status: 'compliant' }],
  ])('%s that takes nothing away is only recorded', async (type, payload) => {
    const token = await world.token({ sub: 'alice' })
    await gateway.push(await world.event(type, userOf('alice'), {}, payload))
    expect((await gateway.read(token)).status).toBe(200)
    expect(await world.effects()).toEqual([])
  })

  test('of an unknown type is accepted, has no effect, and is in the audit trail', async () => {
    for (const type of [`${CAEP}session-established`, 'urn:x:unknown', `${RISC}opt-in`]) {
      const response = await gateway.push(await world.event(type, { format: 'opaque', id: 'x' }))
      expect(response.status).toBe(202)
      expect(fieldsOf()).toMatchObject({ 'signals.type': type, 'signals.outcome': 'ignored' })
    }
    expect(await world.effects()).toEqual([])
  })

  test('is in the audit trail with its transmitter, type and action, without its subject', async () => {
    await gateway.push(
      await world.event(`${RISC}account-disabled`, userOf('alice'), { claims: { jti: 'event-1' } }),
    )
    const event = gateway.events.at(-1)
    expect(event).toMatchObject({
      route: '/-/signals/events',
      decision: 'allow',
      status: 202,
      fields: {
        'signals.transmitter': ISSUER,
        'signals.id': 'event-1',
        'signals.type': `${RISC}account-disabled`,
        'signals.action': 'ban',
        'signals.outcome': 'applied',
      },
    })
    expect(JSON.stringify(event)).not.toContain('alice')
  })

  test('that is sent again is accepted again, and refuses nothing that was issued since', async () => {
    const event = await world.event(SESSION_REVOKED, userOf('alice'))
    await gateway.push(event)
    const keys = await world.effects()
    const cutoff = keys.find((key) => key.startsWith('pc:cutoff')) ?? ''
    await world.redis.direct.set(cutoff, '5')
    const [first, second] = await Promise.all([gateway.push(event), world.isolate().push(event)])
    expect([first.status, second.status]).toEqual([202, 202])
    expect(await world.redis.direct.get(cutoff)).toBe('5')
    expect(fieldsOf()?.['signals.outcome']).toBe('duplicate')
  })

  test('is remembered for as long as it is accepted', async () => {
    const at = Math.floor(Date.now() / 1000)
    await gateway.push(
      await world.event(SESSION_REVOKED, userOf('alice'), { claims: { iat: at + 4 } }),
    )
    const [key = ''] = await world.redis.direct.keys('pc:signal-event:*')
    expect(await world.redis.direct.ttl(key)).toBeGreaterThanOrEqual(86_400 + 4 + 5)
  })

  test('that Redis cannot store is 503, and has its effect when it is sent again', async () => {
    const token = await world.token({ sub: 'alice' })
    const event = await world.event(SESSION_REVOKED, userOf('alice'))
    world.redis.setAnswering(false)
    const failed = await gateway.push(event)
    world.redis.setAnswering(true)
    expect([failed.status, failed.headers.get('Retry-After')]).toEqual([503, expect.any(String)])
    const retried = world.isolate()
    expect((await retried.push(event)).status).toBe(202)
    expect((await retried.read(token)).status).toBe(401)
  })
})

describe('a verification event', () => {
  test.each([{ state: 'abc' }, {}])('is accepted: %o', async (payload) => {
    const stream = { format: 'opaque', id: 'stream-1' }
    const event = await world.event(`${SSF}verification`, stream, {}, payload)
    expect((await gateway.push(event)).status).toBe(202)
    expect(fieldsOf()?.['signals.outcome']).toBe('verified')
  })
})

describe('a hostile push has no effect [S90]', () => {
  type Attack = () => Promise<{ body: string; headers?: object }>
  const now = () => Math.floor(Date.now() / 1000)
  const changed = (claims: object, header: object = {}) =>
    world.event(SESSION_REVOKED, userOf('alice'), { claims: { ...claims }, header: { ...header } })

  const REFUSED: readonly [name: string, err: string, attack: Attack][] = [
    [
      'another audience',
      'invalid_audience',
      async () => ({ body: await changed({ aud: PUBLIC_URL }) }),
    ],
    ['no audience', 'invalid_audience', async () => ({ body: await changed({ aud: undefined }) })],
    [
      'another issuer',
      'invalid_issuer',
      async () => ({ body: await changed({ iss: REMOTE_ISSUER }) }),
    ],
    ['no issuer', 'invalid_issuer', async () => ({ body: await changed({ iss: undefined }) })],
    [
      'an issuer in a list',
      'invalid_issuer',
      async () => ({ body: await changed({ iss: [ISSUER] }) }),
    ],
    [
      'the key of another issuer',
      'authentication_failed',
      async () => ({
        body: await signEvent(
          { ...world.remoteKey, kid: world.key.kid },
          SESSION_REVOKED,
          userOf('alice'),
        ),
      }),
    ],
    [
      'an unknown key',
      'invalid_key',
      async () => ({
        body: await signEvent(await createKey('x'), SESSION_REVOKED, userOf('alice')),
      }),
    ],
    [
      'alg none',
      'invalid_key',
      async () => {
        const [, payload] = (await changed({})).split('.')
        const header = Buffer.from(JSON.stringify({ alg: 'none', typ: 'secevent+jwt' }))
        return { body: `${header.toString('base64url')}.${payload}.AA` }
      },
    ],
    [
      'a changed payload',
      'authentication_failed',
      async () => {
        const [header, , signature] = (await changed({})).split('.')
        const [, payload] = (await changed({ jti: 'x' })).split('.')
        return { body: `${header}.${payload}.${signature}` }
      },
    ],
    [
      'the type of an access token',
      'invalid_request',
      async () => ({ body: await changed({}, { typ: 'at+jwt' }) }),
    ],
    ['no type', 'invalid_request', async () => ({ body: await changed({}, { typ: undefined }) })],
    [
      'a critical extension',
      'invalid_request',
      async () => ({ body: await changed({}, { crit: ['b64'], b64: true }) }),
    ],
    ['an expiry', 'invalid_request', async () => ({ body: await changed({ exp: now() + 60 }) })],
    ['no id', 'invalid_request', async () => ({ body: await changed({ jti: undefined }) })],
    [
      'a long id',
      'invalid_request',
      async () => ({ body: await changed({ jti: 'j'.repeat(300) }) }),
    ],
    ['no time', 'invalid_request', async () => ({ body: await changed({ iat: undefined }) })],
    [
      'a time in the future',
      'invalid_request',
      async () => ({ body: await changed({ iat: now() + 60 }) }),
    ],
    [
      'an old time',
      'invalid_request',
      async () => ({ body: await changed({ iat: now() - 90_000 }) }),
    ],
    ['no events', 'invalid_request', async () => ({ body: await changed({ events: {} }) })],
    [
      'events in a list',
      'invalid_request',
      async () => ({ body: await changed({ events: [SESSION_REVOKED] }) }),
    ],
    [
      'too many events',
      'invalid_request',
      async () => ({
        body: await changed({
          events: Object.fromEntries(
            Array.from({ length: 17 }, (_, n) => [`${SESSION_REVOKED}${n}`, {}]),
          ),
        }),
      }),
    ],
    [
      'a token in a token',
      'invalid_request',
      async () => ({
        body: Buffer.from(JSON.stringify({ set: await changed({}) })).toString('base64url'),
      }),
    ],
    [
      'a token signed around another',
      'invalid_request',
      async () => {
        const inner = await changed({})
        const header = (await changed({}, { cty: 'JWT' })).split('.')[0]
        return { body: `${header}.${Buffer.from(inner).toString('base64url')}.AAAA` }
      },
    ],
    ['JSON', 'invalid_request', async () => ({ body: '{"events":{}}' })],
    ['nothing', 'invalid_request', async () => ({ body: '' })],
  ]

  test.each(REFUSED)('%s: %s', async (_, err, attack) => {
    const token = await world.token({ sub: 'alice' })
    const { body, headers } = await attack()
    const response = await gateway.push(body, headers)
    expect([response.status, response.headers.get('content-type')]).toEqual([
      400,
      'application/json',
    ])
    expect(response.headers.get('content-language')).toBe('en')
    expect(await response.json()).toEqual({ err, description: expect.any(String) })
    expect(gateway.events.at(-1)).toMatchObject({
      decision: 'deny',
      reason: expect.stringMatching(/^signal_refused:\w+$/),
    })
    expect(await world.effects()).toEqual([])
    expect((await gateway.read(token)).status).toBe(200)
  })

  test.each([
    ['a subject of another issuer', userOf('alice', REMOTE_ISSUER), 'foreign_subject'],
    ['a subject without an issuer', { format: 'iss_sub', sub: 'alice' }, 'unsupported_subject'],
    [
      'a session of another issuer',
      {
        format: 'complex',
        user: userOf('alice'),
        session: { format: 'iss_sub', iss: REMOTE_ISSUER, sub: 's1' },
      },
      'foreign_subject',
    ],
    [
      'aliases of two issuers',
      { format: 'aliases', identifiers: [userOf('alice'), userOf('alice', REMOTE_ISSUER)] },
      'foreign_subject',
    ],
    [
      'a tenant for an unknown user',
      {
        format: 'complex',
        user: { format: 'did', url: 'did:x' },
        tenant: { format: 'opaque', id: 'north' },
      },
      'unsupported_subject',
    ],
    [
      'an unknown format',
      { format: 'ip-addresses', 'ip-addresses': ['192.0.2.1'] },
      'unsupported_subject',
    ],
    ['a subject that is no object', 'alice', 'unsupported_subject'],
    [
      'a subject of the wrong type',
      { format: 'opaque', id: { toString: 'alice' } },
      'unsupported_subject',
    ],
    ['no subject', undefined, 'unsupported_subject'],
    [
      'nested aliases',
      { format: 'aliases', identifiers: [{ format: 'aliases', identifiers: [userOf('alice')] }] },
      'unsupported_subject',
    ],
  ])('%s', async (_, subject, outcome) => {
    const own = await world.token({ sub: 'alice', tenant: 'north', sid: 's1' })
    const foreign = await world.token({ iss: REMOTE_ISSUER, sub: 'alice' }, world.remoteKey)
    const response = await gateway.push(await world.event(`${RISC}account-disabled`, subject))
    expect(response.status).toBe(202)
    expect(fieldsOf()?.['signals.outcome']).toBe(outcome)
    expect(await world.effects()).toEqual([])
    for (const token of [own, foreign]) expect((await gateway.read(token)).status).toBe(200)
  })

  test('1 MB, with and without a length, is refused before it is parsed', async () => {
    const body = 'e'.repeat(1_048_576)
    const response = await gateway.push(body)
    expect([response.status, await response.json()]).toMatchObject([
      413,
      { err: 'invalid_request' },
    ])
    const chunked = await gateway.send('/-/signals/events', {
      method: 'POST',
      body: new Blob([body]).stream(),
      headers: { 'content-type': 'application/secevent+jwt' },
      duplex: 'half',
    } as never)
    expect(chunked.status).toBe(413)
  })

  test('another media type, an encoded body and another method', async () => {
    const event = await world.event(SESSION_REVOKED, userOf('alice'))
    for (const type of ['application/json', 'application/jwt', 'application/secevent+jwtx', ''])
      expect((await gateway.push(event, { 'content-type': type })).status).toBe(415)
    const read = await gateway.send('/-/signals/events', { headers: {} })
    expect([read.status, read.headers.get('allow')]).toEqual([405, 'POST'])
    expect(await world.effects()).toEqual([])
    const withCharset = { 'content-type': 'application/SecEvent+JWT; charset=utf-8' }
    expect((await gateway.push(event, withCharset)).status).toBe(202)
  })

  test('a push without the agreed Authorization', async () => {
    const agreed = world.isolate({
      vars: {
        SIGNAL_TRANSMITTERS: JSON.stringify([{ issuer: ISSUER, authorization: 'Bearer s3cr3t' }]),
      },
    })
    const event = await world.event(SESSION_REVOKED, userOf('alice'))
    for (const headers of [
      {},
      { authorization: 'Bearer s3cr3' },
      { authorization: 'bearer s3cr3t' },
    ]) {
      const response = await agreed.push(event, headers)
      expect([response.status, await response.json()]).toMatchObject([
        400,
        { err: 'authentication_failed' },
      ])
    }
    expect(await world.effects()).toEqual([])
    expect((await agreed.push(event, { authorization: 'Bearer s3cr3t' })).status).toBe(202)
  })
})

describe('a policy', () => {
  const transmitter = { issuer: ISSUER, audience: EVENT_AUDIENCE }

  test('chooses the action of each event type, or the only types with an effect', async () => {
    const event = await world.event(SESSION_REVOKED, userOf('alice'))
    const observing = world.isolate({
      transmitters: [{ ...transmitter, events: { 'session-revoked': 'observe' } }],
    })
    await observing.push(event)
    expect(await world.effects()).toEqual([])
    const banning = world.isolate({
      transmitters: [{ ...transmitter, events: { [SESSION_REVOKED]: 'ban' } as never }],
    })
    await banning.push(event)
    expect(await world.effects()).toEqual(
      expect.arrayContaining([expect.stringMatching(/^pc:ban:subject:/)]),
    )
    await world.redis.direct.flushall()
    const listing = world.isolate({
      transmitters: [{ ...transmitter, events: ['session-revoked'] }],
    })
    await listing.push(await world.event(`${RISC}account-disabled`, userOf('alice')))
    expect(await world.effects()).toEqual([])
    await listing.push(event)
    expect(await world.effects()).not.toEqual([])
  })

  test('names the issuers whose subjects a transmitter may affect', async () => {
    const isolate = world.isolate({
      transmitters: [{ ...transmitter, subjectsOf: [REMOTE_ISSUER] }],
    })
    const own = await world.token({ sub: 'alice' })
    const named = await world.token({ iss: REMOTE_ISSUER, sub: 'alice' }, world.remoteKey)
    await isolate.push(await world.event(SESSION_REVOKED, userOf('alice')))
    expect([(await isolate.read(own)).status, (await isolate.read(named)).status]).toEqual([
      200, 401,
    ])
  })

  test.each([
    [{ transmitters: [] }, 'signals.transmitters: '],
    [{ transmitters: [{ issuer: ISSUER }] }, 'audience: is missing'],
    [
      { transmitters: [{ ...transmitter, events: ['session-revokd'] }] },
      'unknown event type; use one of',
    ],
    [
      { transmitters: [{ ...transmitter, events: { 'session-revoked': 'liftBan' } }] },
      'only account-enabled may have liftBan',
    ],
    [{ transmitters: [{ ...transmitter, algorithms: ['HS256'] }] }, 'algorithms'],
    [{ transmitters: [transmitter, transmitter] }, 'duplicate transmitter'],
  ])('with a mistake is refused: %o', async (definition, message) => {
    const { signals } = await import('../../../src/features/signals/index.ts')
    expect(() => signals(definition as never)).toThrow(message)
  })

  test('with an issuer that is not trusted, and secrets of no transmitter, are refused at the start', () => {
    const unknown = { issuer: 'https://unknown.test', audience: EVENT_AUDIENCE }
    expect(() => world.isolate({ transmitters: [unknown] })).toThrow(/subjectsOf: is missing/)
    expect(() =>
      world.isolate({ transmitters: [{ ...transmitter, subjectsOf: ['https://issuer.tst'] }] }),
    ).toThrow(/subjectsOf\[0\]: must be an issuer in ISSUERS/)
    const vars = { SIGNAL_TRANSMITTERS: JSON.stringify([{ issuer: 'https://x.test' }]) }
    expect(() => world.isolate({ vars })).toThrow(/SIGNAL_TRANSMITTERS/)
  })
})

/** Events that the gateway fetches from a transmitter (RFC 8936). */
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { gatewayWorker } from '../../../src/runtimes/cloudflare/index.ts'
import { serve } from '../../../src/runtimes/node/index.ts'
import { ISSUER, REMOTE_ISSUER } from '../../harness/issuer.ts'
import { signalPolicy } from './policy.ts'
import { startPollTransmitter } from './poll-transmitter.ts'
import { CAEP, EVENT_AUDIENCE, userOf } from './transmitter.ts'
import { startWorld, type World } from './world.ts'

const SESSION_REVOKED = `${CAEP}session-revoked`

/** Events without a request are in the log. */
const logged: string[] = []

let world: World
let transmitter: Awaited<ReturnType<typeof startPollTransmitter>>
beforeAll(async () => {
  world = await startWorld()
  transmitter = await startPollTransmitter()
})
afterAll(async () => {
  await transmitter?.close()
  await world?.close()
})
beforeEach(async () => {
  logged.length = 0
  vi.spyOn(console, 'log').mockImplementation((line: string) => void logged.push(line))
  await world.redis.direct.flushall()
  transmitter.kept.clear()
  transmitter.requests.length = 0
  Object.assign(transmitter.state, { token: 'token-1', alwaysHasMore: false, extra: '' })
})

const definition = () => [
  {
    issuer: ISSUER,
    audience: EVENT_AUDIENCE,
    poll: { url: transmitter.url, everySeconds: 60 },
  },
]
const SECRET = { issuer: ISSUER, accessToken: 'token-1' }
const secrets = (own: object = SECRET) => ({ SIGNAL_TRANSMITTERS: JSON.stringify([own]) })
const isolate = (own?: object) => world.isolate({ transmitters: definition(), vars: secrets(own) })

async function keep(subject: unknown, claims: object = {}): Promise<string> {
  const jti = crypto.randomUUID()
  const claimsOf = { jti, ...claims }
  transmitter.kept.set(jti, await world.event(SESSION_REVOKED, subject, { claims: claimsOf }))
  return jti
}

describe('a polled event [S90]', () => {
  test('has its effect before it is acknowledged, and is in the audit trail', async () => {
    const token = await world.token({ sub: 'alice' })
    const id = await keep(userOf('alice'))
    const gateway = isolate()
    expect((await gateway.read(token)).status).toBe(200)
    await gateway.runTasks()
    expect((await gateway.read(token)).status).toBe(401)
    expect(transmitter.requests).toEqual([
      { maxEvents: 50, returnImmediately: true },
      { maxEvents: 0, returnImmediately: true, ack: [id] },
    ])
    expect(logged).toHaveLength(1)
    expect(JSON.parse(logged[0] ?? '')).toMatchObject({
      decision: 'allow',
      status: 0,
      fields: {
        'signals.id': id,
        'signals.outcome': 'applied',
        'signals.action': 'revokeSessions',
      },
    })
  })

  test('that is not accepted is answered with its error, and the others have their effects', async () => {
    const refused = [
      await keep(userOf('bob'), { aud: 'https://other.test' }),
      await keep(userOf('bob'), { iss: REMOTE_ISSUER }),
    ]
    transmitter.kept.set('junk', 'junk')
    await keep(userOf('alice'))
    const [alice, bob] = [await world.token({ sub: 'alice' }), await world.token({ sub: 'bob' })]
    const gateway = isolate()
    await gateway.runTasks()
    expect([(await gateway.read(alice)).status, (await gateway.read(bob)).status]).toEqual([
      401, 200,
    ])
    expect(transmitter.requests.at(-1)?.setErrs).toMatchObject({
      [refused[0] ?? '']: { err: 'invalid_audience' },
      [refused[1] ?? '']: { err: 'invalid_issuer' },
      junk: { err: 'invalid_request' },
    })
    expect(transmitter.kept.size).toBe(0)
  })

  test('of another transmitter of the policy is refused', async () => {
    const gateway = world.isolate({
      transmitters: [...definition(), { issuer: REMOTE_ISSUER, audience: EVENT_AUDIENCE }],
      vars: secrets(),
    })
    const id = await keep(userOf('alice', REMOTE_ISSUER), { iss: REMOTE_ISSUER })
    await gateway.runTasks()
    expect(transmitter.requests.at(-1)?.setErrs?.[id]?.err).toBe('invalid_issuer')
    expect(await world.effects()).toEqual([expect.stringMatching(/^pc:signal-poll:/)])
  })

  test('that Redis cannot store stays with the transmitter, until Redis answers', async () => {
    const token = await world.token({ sub: 'alice' })
    await keep(userOf('alice'))
    const gateway = isolate()
    world.redis.setAnswering(false)
    await gateway.runTasks()
    world.redis.setAnswering(true)
    expect(transmitter.kept.size).toBe(1)
    const next = isolate()
    await next.runTasks()
    expect(transmitter.kept.size).toBe(0)
    expect((await next.read(token)).status).toBe(401)
  })
})

describe('polls', () => {
  test('are one for all gateways in each interval', async () => {
    const gateways = [isolate(), isolate(), isolate()]
    await Promise.all(gateways.map((gateway) => gateway.runTasks()))
    expect(transmitter.requests).toHaveLength(1)
  })

  test('end, if the transmitter always has more [S90]', async () => {
    transmitter.state.alwaysHasMore = true
    await isolate().runTasks()
    expect(transmitter.requests).toHaveLength(10)
  })

  test('fetch more than one response has', async () => {
    for (let n = 0; n < 120; n++) await keep({ format: 'opaque', id: `user-${n}` })
    await isolate().runTasks()
    expect(transmitter.kept.size).toBe(0)
    expect(transmitter.requests).toHaveLength(4)
  })

  test('with a response that is too large have no effect [S90]', async () => {
    await keep(userOf('alice'))
    transmitter.state.extra = 'x'.repeat(1_048_576)
    await isolate().runTasks()
    expect(await world.effects()).toEqual([expect.stringMatching(/^pc:signal-poll:/)])
    expect(transmitter.kept.size).toBe(1)
  })

  test('use a token of the client, and a new one after a refusal', async () => {
    const client = { id: 'gateway', secret: 's3cr3t', tokenEndpoint: transmitter.tokenEndpoint }
    const gateway = isolate({ issuer: ISSUER, client })
    const before = transmitter.state.tokenRequests
    await keep(userOf('alice'))
    await gateway.runTasks()
    expect(transmitter.kept.size).toBe(0)
    transmitter.state.token = 'token-2'
    await world.redis.direct.flushall()
    await keep(userOf('alice'))
    await gateway.runTasks()
    expect(transmitter.kept.size).toBe(0)
    expect(transmitter.state.tokenRequests - before).toBe(2)
  })
})

describe('the runtime polls by itself', () => {
  test('on Node, until the server ends', async () => {
    await keep(userOf('alice'))
    const server = await serve({
      policy: signalPolicy(definition()),
      env: { ...world.environment, ...secrets(), AUDIT_DATABASE: undefined },
      port: 0,
    })
    await server.close()
    expect(transmitter.kept.size).toBe(0)
    expect((await world.isolate().read(await world.token({ sub: 'alice', iat: 1 }))).status).toBe(
      401,
    )
  })

  test('on Workers, when it is scheduled', async () => {
    await keep(userOf('alice'))
    const context = { waitUntil() {}, passThroughOnException() {} }
    const env = { ...world.environment, ...secrets() }
    await gatewayWorker(signalPolicy(definition())).scheduled({}, env, context)
    expect(transmitter.kept.size).toBe(0)
  })

  test('and a Worker with an invalid environment does nothing', async () => {
    const context = { waitUntil() {}, passThroughOnException() {} }
    const worker = gatewayWorker(signalPolicy(definition()))
    await worker.scheduled({}, { PUBLIC_URL: 'x' } as never, context)
    expect(transmitter.requests).toEqual([])
  })
})

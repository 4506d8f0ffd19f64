/** Events between the admission of a request and the end of its body. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import * as z from 'zod'
import { addressBanKey, subjectBanKey } from '../../../src/access/abuse/ban.ts'
import { revokedBeforeKey } from '../../../src/access/revocation/revocation.ts'
import type { RouteDefinition } from '../../../src/policy/definition.ts'
import { DEFAULT_KEYS } from '../../../src/redis/keys.ts'
import { ISSUER } from '../../harness/issuer.ts'
import { slowly } from '../../harness/slow-body.ts'
import { startWorld, type World } from '../relations/pipeline/gateway.ts'

/** Longer than an admission is valid. */
const SLOW_MS = 1_100
const BOUND_MS = 200
const input = { body: z.strictObject({ text: z.string() }) }
const notes = { method: 'POST', permission: 'orders:read', limits: ['standard'] } as const
const ROUTES: readonly RouteDefinition<'standard'>[] = [
  { ...notes, path: '/notes/:id', input },
  { ...notes, path: '/streamed/:id' },
  { ...notes, path: '/inspected/:id', inspect: {} },
  {
    ...notes,
    path: '/orders/:id',
    input,
    relation: { object: 'order:{params.id}', relation: 'viewer' },
  },
]
const PUBLIC: readonly RouteDefinition<'standard'>[] = [
  { method: 'POST', path: '/public/:id', anonymous: true, limits: ['standard'], input },
]

let world: World
let strict: ReturnType<World['isolate']>
let bounded: ReturnType<World['isolate']>
let open: ReturnType<World['isolate']>
beforeAll(async () => {
  world = await startWorld()
  strict = world.isolate({ routes: ROUTES })
  bounded = world.isolate({ routes: ROUTES, policy: { revocation: { maxStalenessMs: BOUND_MS } } })
  const standard = { limit: 100, windowSeconds: 60, by: 'address', onUnavailable: 'deny' }
  open = world.isolate({ routes: PUBLIC, policy: { limits: { standard } } })
  await open.statusOf('/public/warm', undefined, { method: 'POST' })
  const token = await world.token('anybody')
  for (const isolate of [strict, bounded]) {
    await world.write(null, 'order:known#owner@user:anybody')
    await isolate.statusOf('/notes/warm', token, { method: 'POST' })
    await isolate.statusOf('/orders/known', token, { method: 'POST' })
  }
})
afterAll(() => world?.close())

/** Sends a body that ends `afterMs` after `meanwhile` has run. */
async function send(
  isolate: ReturnType<World['isolate']>,
  [path, subject, afterMs]: readonly [path: string, subject: string | null, afterMs: number],
  meanwhile: () => Promise<unknown>,
  { claims = {}, address = '192.0.2.7' }: { claims?: object; address?: string } = {},
) {
  const { stream, pulled, end } = slowly({ text: 'late' })
  const token = subject === null ? undefined : await world.token(subject, { ...claims })
  const pending = isolate.send(path, token, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'cf-connecting-ip': address },
    body: stream,
  })
  await pulled
  await meanwhile()
  await new Promise((done) => setTimeout(done, afterMs))
  end()
  const { status, headers } = await pending
  const isReached = world.reached.includes(`POST ${path}`)
  const reason = isolate.events.find(({ actor }) => actor.subject === subject)?.reason
  return { status, isReached, reason, left: headers.get('ratelimit') }
}

const idle = async () => undefined
const seconds = () => Math.floor(Date.now() / 1000)
const revokeBefore = async (subject: string) =>
  world.redis.direct.set(
    await revokedBeforeKey(DEFAULT_KEYS, 'subject', ISSUER, subject),
    seconds() + 5,
    'EX',
    600,
  )
const ban = async (subject: string) =>
  world.redis.direct.set(
    await subjectBanKey(DEFAULT_KEYS, ISSUER, subject),
    seconds() + 600,
    'EX',
    600,
  )

describe.concurrent('a request with a slow body [S30]', () => {
  test.each(['/notes', '/inspected'])(
    '%s: is refused if its subject was revoked meanwhile',
    async (path) => {
      const subject = `cut-off-${path.slice(1)}`
      const outcome = await send(strict, [`${path}/${subject}`, subject, SLOW_MS], () =>
        revokeBefore(subject),
      )
      expect(outcome).toMatchObject({
        status: 401,
        isReached: false,
        reason: 'token_revoked:subject',
      })
    },
  )

  test('is refused if its subject was banned meanwhile', async () => {
    const outcome = await send(strict, ['/notes/banned', 'banned', SLOW_MS], () => ban('banned'))
    expect(outcome).toMatchObject({ status: 403, isReached: false, reason: 'banned:subject' })
  })

  test('is refused if its subject lost the relation meanwhile', async () => {
    const tuple = 'order:lost#owner@user:loser'
    await world.write(null, tuple)
    const outcome = await send(strict, ['/orders/lost', 'loser', SLOW_MS], () =>
      world.remove(null, tuple),
    )
    expect(outcome).toMatchObject({ status: 403, isReached: false })
    expect(outcome.reason).toBe('relation_missing:order#viewer')
  })

  test('is also refused by a gateway with a staleness bound', async () => {
    const outcome = await send(bounded, ['/notes/bounded', 'bounded', SLOW_MS], () =>
      revokeBefore('bounded'),
    )
    expect(outcome).toMatchObject({
      status: 401,
      isReached: false,
      reason: 'token_revoked:subject',
    })
  })

  test('is refused if its token expired meanwhile', async () => {
    // Three seconds before the end of the issuer's tolerance, which is longer than an admission on a busy machine.
    const claims = { iat: seconds() - 60, exp: seconds() - 2 }
    const outcome = await send(strict, ['/notes/ended', 'ended', 4 * SLOW_MS], idle, { claims })
    expect(outcome).toMatchObject({ status: 401, isReached: false, reason: 'token_rejected:exp' })
  })

  test('is refused if its address was banned meanwhile, for anonymous callers too', async () => {
    const address = '192.0.2.66'
    const ban = async () =>
      world.redis.direct.set(await addressBanKey(DEFAULT_KEYS, address), seconds() + 600, 'EX', 600)
    const outcome = await send(open, ['/public/banned', null, SLOW_MS], ban, { address })
    expect(outcome).toMatchObject({ status: 403, isReached: false })
    const other = await send(open, ['/public/other', null, SLOW_MS], idle)
    expect(other).toMatchObject({ status: 200, isReached: true })
  })

  test('is forwarded otherwise, and counts once', async () => {
    const outcome = await send(strict, ['/notes/good', 'good', SLOW_MS], idle)
    expect(outcome).toMatchObject({ status: 200, isReached: true, reason: 'ok' })
    expect(outcome.left).toMatch(/r=999999;/)
  })

  test('is forwarded if its relation still exists', async () => {
    await world.write(null, 'order:kept#owner@user:keeper')
    const outcome = await send(strict, ['/orders/kept', 'keeper', SLOW_MS], idle)
    expect(outcome).toMatchObject({ status: 200, isReached: true, reason: 'ok' })
  })
})

test('a prompt body costs one call to Redis and a slow body costs two', async () => {
  const callsOf = async (ms: number) => {
    for (let n = 0; n < 10; n++) {
      const [before, startMs] = [world.redis.calls(), performance.now()]
      const { status } = await send(strict, [`/notes/${ms}`, 'caller', ms], idle)
      expect(status).toBe(200)
      // On a slow machine, a prompt body may be slow too.
      if (ms > 0 || performance.now() - startMs < 900) return world.redis.calls() - before
    }
    throw new Error('no body was prompt')
  }
  await callsOf(0)
  expect([await callsOf(0), await callsOf(SLOW_MS)]).toEqual([1, 2])
})

test('a slow body is refused if the second admission is unavailable [S30]', async () => {
  const outcome = await send(strict, ['/notes/outage', 'outage', SLOW_MS], async () =>
    world.redis.setAnswering(false),
  )
  expect(outcome).toMatchObject({ status: 503, isReached: false })
})

test('a streamed body reaches the origin with its first byte', async () => {
  const outcome = await send(strict, ['/streamed/one', 'streamer', 0], () =>
    expect.poll(() => world.reached).toContain('POST /streamed/one'),
  )
  expect(outcome).toMatchObject({ status: 200, isReached: true })
})

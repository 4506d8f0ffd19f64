import { afterAll, beforeAll, expect, it } from 'vitest'
import { revokedBeforeKey } from '../../../src/access/revocation/revocation.ts'
import type { RefreshTokens, Rotation } from '../../../src/access/tokens/refresh-tokens.ts'
import { DEFAULT_KEYS } from '../../../src/redis/keys.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { GATEWAY } from './issuing.ts'
import { type Clock, checkOf, GRACE_SECONDS, gateway, newClock, newSession } from './refreshing.ts'
import { NOW_SECONDS } from './signer.ts'

const RUNS = 30
const STEPS = 40
const ACTS = [
  ...Array<'rotate'>(10).fill('rotate'),
  ...(['inspect', 'inspect', 'wait', 'wait', 'cut off', 'end'] as const),
]

let redis: TestRedis
beforeAll(async () => {
  redis = await startTestRedis()
})
afterAll(() => redis.close())

/**
 * A small generator of repeatable random numbers (mulberry32), so that a failing run can be
 * repeated.
 */
function chance(seed: number) {
  let state = seed
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    below: (count: number) => Math.floor(next() * count),
    of: <Value>(values: readonly Value[]) => values[Math.floor(next() * values.length)] as Value,
  }
}

/** The required behavior in its simplest form: a list of generations, one of which is valid. */
class Model {
  readonly #clock: Clock
  current = 0
  #rotatedMs = Number.NEGATIVE_INFINITY
  ended = false
  revokeBefore = false
  #seconds = Number.NaN

  constructor(clock: Clock) {
    this.#clock = clock
  }

  #stateOf(generation: number): 'current' | 'retry' | 'reused' | 'ended' {
    if (this.ended) return 'ended'
    if (generation === this.current) return 'current'
    const inGrace = this.#clock.nowMs - this.#rotatedMs <= GRACE_SECONDS * 1000
    return generation === this.current - 1 && inGrace ? 'retry' : 'reused'
  }

  inspect(generation: number): string {
    const state = this.#stateOf(generation)
    if (state === 'reused') this.ended = true
    return state === 'reused' || state === 'ended' ? state : 'ok'
  }

  /** Returns the failed check, or the resulting generation and its time. */
  rotate(generation: number): string | { readonly generation: number; readonly seconds: number } {
    const state = this.#stateOf(generation)
    if (state === 'reused') this.ended = true
    if (state === 'reused' || state === 'ended') return state
    if (this.revokeBefore) return 'cut_off'
    if (state === 'current') {
      this.current = generation + 1
      this.#rotatedMs = this.#clock.nowMs
      this.#seconds = Math.floor(this.#clock.nowMs / 1000)
    }
    return { generation: this.current, seconds: this.#seconds }
  }
}

/**
 * Runs one random session and records its events in `met`. Throws at the first difference from the
 * model.
 */
async function live(seed: number, met: Set<string>): Promise<void> {
  const random = chance(seed)
  const clock = newClock()
  const gateways = [gateway(redis, { clock }), gateway(redis, { clock })] as const
  const session = newSession()
  const revokeBefore = await revokedBeforeKey(DEFAULT_KEYS, 'client', GATEWAY, `app of ${seed}`)
  const of = { ...session, grant: { ...session.grant, client: `app of ${seed}` } }
  const model = new Model(clock)
  const tokens = [await gateways[0].tokens.open(of)]
  const rotations = new Map<number, Rotation>()

  async function rotate(keeper: RefreshTokens, generation: number, where: string) {
    const expected = model.rotate(generation)
    if (typeof expected === 'string') {
      met.add(expected)
      expect(await checkOf(keeper.rotate(tokens[generation] ?? '', of)), where).toBe(expected)
      return
    }
    const rotation = await keeper.rotate(tokens[generation] ?? '', of)
    const known = rotations.get(expected.generation)
    met.add(known === undefined ? 'rotated' : 'replayed')
    if (known !== undefined) expect(rotation, where).toEqual(known)
    else expect(tokens, where).not.toContain(rotation.refreshToken)
    expect(rotation.issuedAtSeconds, where).toBe(expected.seconds)
    rotations.set(expected.generation, rotation)
    tokens[expected.generation] = rotation.refreshToken
  }

  for (let step = 0; step < STEPS; step++) {
    const keeper = random.of(gateways).tokens
    // Mostly the newest two: older ones end the session.
    const back = random.below(30) === 0 ? random.below(tokens.length) : random.below(2)
    const generation = Math.max(0, tokens.length - 1 - back)
    const act = random.of(ACTS)
    const where = `seed ${seed}, step ${step}: ${act} of generation ${generation}`
    if (act === 'rotate') await rotate(keeper, generation, where)
    else if (act === 'inspect') {
      const expected = model.inspect(generation)
      expect(await checkOf(keeper.inspect(tokens[generation] ?? '', of.grant.client)), where).toBe(
        expected,
      )
    } else if (act === 'wait') clock.advance(random.below(GRACE_SECONDS + 5))
    else if (act === 'end' && random.below(10) === 0) {
      model.ended = true
      await keeper.end(tokens[generation] ?? '')
    } else if (act === 'cut off') {
      model.revokeBefore = !model.revokeBefore
      if (model.revokeBefore) await redis.direct.set(revokeBefore, NOW_SECONDS)
      else await redis.direct.del(revokeBefore)
    }
  }
}

it(`${RUNS} random sessions behave like a simple model [S35, S36, S37]`, async () => {
  const met = new Set<string>()
  for (let seed = 1; seed <= RUNS; seed++) await live(seed, met)
  expect([...met].sort()).toEqual(['cut_off', 'ended', 'replayed', 'reused', 'rotated'])
})

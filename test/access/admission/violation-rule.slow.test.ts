/**
 * Automatic bans depend on time and on refusals, not on isolates. Compares the real script with its
 * model.
 */
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { addressBanKey, subjectBanKey } from '../../../src/access/abuse/ban.ts'
import { type BanDefinition, DEFAULT_BANS } from '../../../src/access/abuse/definition.ts'
import { createViolationCounter } from '../../../src/access/abuse/redis/violations.ts'
import {
  createViolations,
  LIMIT_VIOLATION_MS,
  type Offender,
  type Violations,
} from '../../../src/access/abuse/violations.ts'
import type { RedisConnection } from '../../../src/redis/connection.ts'
import { DEFAULT_KEYS } from '../../../src/redis/keys.ts'
import { readableScript } from '../../harness/lua.ts'
import { startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { SEED } from './schedules.ts'
import { bansOf, type Refusal, rules, step } from './violation-model.ts'

const RUNS = { seed: SEED, numRuns: 60 }
const START_MS = 1_800_000_000_000
const ISSUER = 'https://idp.test'
const READABLE_SCRIPT = await readableScript('access/abuse/redis/count-violation.lua')
/** The script with the clock of the test, in milliseconds, as its last argument. */
const CLOCKED_SCRIPT = READABLE_SCRIPT.replace(
  "local clock=redis.call('TIME')local at",
  'local clock = { math.floor(ARGV[#ARGV] / 1000), ARGV[#ARGV] % 1000 * 1000 } local at',
)

describe.each(['auto', 'embedded'] as const)('the rule of violations over Redis (%s)', (prefer) => {
  let redis: TestRedis
  let nowMs = START_MS
  beforeAll(async () => {
    redis = await startTestRedis(prefer)
  })
  afterAll(() => redis.close())
  afterEach(async () => {
    await redis.direct.flushall()
    nowMs = START_MS
  })

  test('the script uses the clock of the test', () => {
    expect(CLOCKED_SCRIPT).not.toBe(READABLE_SCRIPT)
  })

  let serial = 0
  function offenderOf(kind: Offender['kind']): Offender {
    serial += 1
    if (kind === 'subject') return { kind, issuer: ISSUER, value: `alice-${serial}` }
    return { kind, value: `192.0.2.${serial}` }
  }

  /** Sends scripts directly to Redis, with the clock of the test. */
  const rest: RedisConnection = {
    keys: DEFAULT_KEYS,
    async send([command = []]) {
      const tail = command.slice(2)
      const result = await redis.direct.call('EVAL', CLOCKED_SCRIPT, ...tail.map(String), nowMs)
      return [{ result }]
    },
  }

  /** Creates an isolate with a clock that differs from that of Redis by `skewMs`. */
  function isolate(rule: Required<BanDefinition>, skewMs = 0): Violations {
    const now = () => nowMs + skewMs
    return createViolations({ rule, counter: createViolationCounter(rest, now), now })
  }

  const behind: Promise<unknown>[] = []
  const waitUntil = (promise: Promise<unknown>) => void behind.push(promise)
  const written = () => Promise.all(behind.splice(0))

  /** Returns the second at which the last ban of an offender ends, or 0. */
  async function banEndOf(offender: Offender): Promise<number> {
    const key =
      offender.kind === 'address'
        ? await addressBanKey(DEFAULT_KEYS, offender.value)
        : await subjectBanKey(DEFAULT_KEYS, offender.issuer, offender.value)
    return Number((await redis.direct.get(key)) ?? 0)
  }

  async function countOf({ kind, value }: Offender): Promise<number> {
    const caller = kind === 'subject' ? `subject:${encodeURIComponent(ISSUER)}:${value}` : value
    const [name = ''] = await redis.direct.keys(`pc:violations:*${caller.split(':').at(-1)}`)
    return Number((await redis.direct.get(name))?.split(' ')[0] ?? 0)
  }

  test('refusals cause the same bans, however they are spread over 1 to 50 isolates [S44]', async () => {
    let earned = 0
    const property = fc.asyncProperty(
      rules,
      fc.array(step, { minLength: 10, maxLength: 60 }),
      fc.constantFrom(1, 2, 5, 50),
      fc.constantFrom<Offender['kind']>('address', 'subject'),
      async (rule, steps, isolateCount, kind) => {
        const by = offenderOf(kind)
        const isolates = Array.from({ length: isolateCount }, () => isolate(rule))
        const refusals: Refusal[] = []
        for (const [index, { gapMs, of, at }] of steps.entries()) {
          nowMs += gapMs
          refusals.push({ atMs: nowMs, of })
          isolates[at % isolateCount]?.record({ of, by, from: '198.51.100.1' }, waitUntil)
          // Refusals at the same moment are in progress at the same time.
          if (steps[index + 1]?.gapMs === 0) continue
          await written()
          const bans = bansOf(refusals, rule)
          expect(await banEndOf(by)).toBe(bans.at(-1)?.endsAtSeconds ?? 0)
        }
        earned += bansOf(refusals, rule).length
        nowMs += 100_000_000
      },
    )
    await fc.assert(property, RUNS)
    expect(earned).toBeGreaterThan(50)
  })

  const split = [1, 5, 50] as const

  test.each(split)('a burst over a limit is one violation at %i isolates', async (count) => {
    const by = offenderOf('subject')
    const isolates = Array.from({ length: count }, () => isolate(DEFAULT_BANS))
    for (let burst = 0; burst < 50; burst++) {
      nowMs += 4
      isolates[burst % count]?.record({ of: 'limit', by, from: '198.51.100.1' }, waitUntil)
    }
    await written()
    expect(await countOf(by)).toBe(1)
    expect(await banEndOf(by)).toBe(0)
  })

  test.each(split)('20 s of requests over a limit cause a ban at %i isolates', async (count) => {
    const by = offenderOf('subject')
    const isolates = Array.from({ length: count }, () => isolate(DEFAULT_BANS))
    const beganMs = nowMs
    for (let sent = 0; (await banEndOf(by)) === 0; sent++) {
      isolates[sent % count]?.record({ of: 'limit', by, from: '198.51.100.1' }, waitUntil)
      await written()
      nowMs += 100
    }
    expect(nowMs - 100 - beganMs).toBe((DEFAULT_BANS.violations - 1) * LIMIT_VIOLATION_MS)
  })

  test('isolates with clocks that are minutes off count the same', async () => {
    const by = offenderOf('subject')
    const isolates = [-180_000, -7_000, 0, 7_000, 180_000].map((skew) =>
      isolate(DEFAULT_BANS, skew),
    )
    for (let violation = 1; violation < DEFAULT_BANS.violations; violation++) {
      for (const each of [...isolates, ...isolates.toReversed()]) {
        each.record({ of: 'limit', by, from: '198.51.100.1' }, waitUntil)
        await written()
        nowMs += 10
      }
      expect(await countOf(by)).toBe(violation)
      nowMs += LIMIT_VIOLATION_MS
    }
    expect(await banEndOf(by)).toBe(0)
  })

  test('a violation that could not be written begins with the next refusal', async () => {
    const by = offenderOf('subject')
    let isAnswering = false
    const now = () => nowMs
    const counter = createViolationCounter(
      {
        keys: DEFAULT_KEYS,
        send: (commands) => (isAnswering ? rest.send(commands) : Promise.reject(new Error('no'))),
      },
      now,
    )
    const violations = createViolations({ rule: DEFAULT_BANS, counter, now })
    const refuse = async () => {
      violations.record({ of: 'limit', by, from: '198.51.100.1' }, waitUntil)
      await written()
    }
    await refuse()
    isAnswering = true
    await refuse()
    expect(await countOf(by)).toBe(1)
  })

  test('the lookup of a lifted ban counts only what is a violation', async () => {
    const by = offenderOf('address')
    const violations = isolate(DEFAULT_BANS)
    for (const [of, count] of [
      [undefined, 0],
      ['credential', 1],
    ] as const) {
      violations.learn(by.value, 3_600)
      nowMs += 11_000
      expect(violations.banSeconds(by.value, of, waitUntil)).toBe(3_589)
      await written()
      expect(violations.banSeconds(by.value, of, waitUntil)).toBeUndefined()
      expect(await countOf(by)).toBe(count)
    }
  })

  test('a count expires with its window, and a malformed one starts anew [R18]', async () => {
    const by = offenderOf('address')
    const name = `pc:violations:address:${by.value}`
    await redis.direct.set(name, '4', 'EX', 600)
    isolate(DEFAULT_BANS).record({ of: 'credential', by, from: by.value }, waitUntil)
    await written()
    expect(await redis.direct.get(name)).toBe(`1 ${nowMs} 0`)
    const ttl = await redis.direct.pttl(name)
    expect(ttl).toBeGreaterThan(0)
    expect(ttl).toBeLessThanOrEqual(DEFAULT_BANS.windowSeconds * 1000)
  })
})

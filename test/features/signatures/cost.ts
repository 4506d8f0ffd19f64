/**
 * `node test/features/signatures/cost.ts`: prints the CPU time that signatures use for a text, scanned and
 * from the cache. User and system time of the process, the best of several rounds.
 */
import { scan } from '../../../src/features/signatures/scanner.ts'
import {
  createVerdictCache,
  type VerdictCache,
} from '../../../src/features/signatures/verdict-cache.ts'
import { HARMLESS } from './harmless-texts.ts'

const SIZES = [100, 1_000, 2_000, 10_000] as const
const TEXTS = 200
const ROUNDS = 15

const NO_CACHE: VerdictCache = { ...createVerdictCache(), get: () => undefined, set: () => {} }

/** Creates texts of about `chars` characters from harmless ones, each with punctuation. */
function textsOf(chars: number): string[] {
  const whole = HARMLESS.join('; ')
  const parts = Math.floor(whole.length / chars)
  return Array.from({ length: TEXTS }, (_, index) => {
    const start = (index % parts) * chars
    return `${index}; ${whole.slice(start, start + chars)}`
  })
}

/** Returns the microseconds of CPU for a text in the best round. */
function costOf(texts: readonly string[], cache: VerdictCache): number {
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < ROUNDS; round++) {
    const before = process.cpuUsage()
    for (const text of texts) scan(text, cache)
    const { user, system } = process.cpuUsage(before)
    best = Math.min(best, (user + system) / texts.length)
  }
  return best
}

for (const chars of SIZES) {
  const texts = textsOf(chars)
  const warm = createVerdictCache(64 * 1_024 * 1_024)
  for (const text of texts) scan(text, warm)
  // Parsed again as on arrival, because a string that was looked up before caches its hash.
  const arrived = () => JSON.parse(JSON.stringify(texts)) as string[]
  const scanned = costOf(arrived(), NO_CACHE)
  let remembered = Number.POSITIVE_INFINITY
  for (let round = 0; round < ROUNDS; round++) {
    const fresh = arrived()
    const before = process.cpuUsage()
    for (const text of fresh) scan(text, warm)
    const { user, system } = process.cpuUsage(before)
    remembered = Math.min(remembered, (user + system) / fresh.length)
  }
  console.log(
    `${chars} characters: scanned ${scanned.toFixed(2)} us, cached ${remembered.toFixed(2)} us`,
  )
}

/** Checks of the times of a token. */
import { MAX_CLOCK_TOLERANCE_SECONDS } from '../../src/validators/issuer.ts'
import { type Check, failed, passed } from './check.ts'
import type { Comparison } from './comparison.ts'
import { judgeTimes } from './rules.ts'

/** Suggested tolerances are multiples of this. */
const STEP_SECONDS = 10

export async function timeChecks({
  config,
  presented: { payload },
  of,
  nowMs,
}: Comparison): Promise<readonly Check[]> {
  const times = await judgeTimes(config, payload, nowMs)
  const nowSeconds = Math.floor(nowMs / 1000)
  const { clockTolerance, maxTokenAge } = config
  const now = `now ${timeOf(nowSeconds)}, ${clockTolerance} s tolerance`
  const checks: Check[] = []
  if (times.exp !== undefined) checks.push(expiry(Number(payload.exp)))
  for (const name of ['nbf', 'iat'] as const) {
    if (times[name] !== undefined) checks.push(start(name, Number(payload[name])))
  }
  if (times.lifetime !== undefined) checks.push(lifetime(Number(payload.iat), Number(payload.exp)))
  return checks

  function expiry(exp: number): Check {
    const seen = timeOf(exp)
    if (times.exp) return { ...passed('exp', exp), seen, expected: `after ${now}` }
    const mistake = `the token expired ${nowSeconds - Math.floor(exp)} s ago, at ${seen}`
    const remedy =
      'Request a new token. If a new one fails too, compare the clocks of the provider and of this machine'
    return { ...failed('exp', exp, mistake, { remedy, expected: `after ${now}` }), seen }
  }

  function start(name: 'nbf' | 'iat', value: number): Check {
    const seen = timeOf(value)
    const expected = `before ${now}`
    if (times[name]) return { ...passed(name, value), seen, expected }
    const skew = Math.ceil(value - nowSeconds)
    const tolerance = Math.ceil(skew / STEP_SECONDS) * STEP_SECONDS
    const isSmall = tolerance <= MAX_CLOCK_TOLERANCE_SECONDS
    const mistake = `${name} of the token is ${skew} s in the future: the clock of the issuer is ahead, or that of this machine is behind`
    const check = failed(name, value, mistake, {
      expected,
      remedy: 'Correct the clocks; the gateway uses its own',
      ...(isSmall && {
        change: { clockTolerance: tolerance },
        condition: `clockTolerance: only if the clocks cannot be corrected; expired tokens are accepted ${tolerance} s longer`,
      }),
    })
    return { ...check, seen }
  }

  function lifetime(iat: number, exp: number): Check {
    const seconds = exp - iat
    const seen = `${seconds} s`
    const expected = `at most ${maxTokenAge} s`
    if (times.lifetime) return { ...passed('lifetime', seconds), seen, expected }
    if (seconds < 0) {
      const remedy = 'Report it to the provider'
      return failed('lifetime', seconds, 'the token expires before it was issued', {
        expected,
        remedy,
      })
    }
    const mistake = `the token is valid for ${seconds} s, and ${of} permits ${maxTokenAge} s (maxTokenAge)`
    const check = failed('lifetime', seconds, mistake, {
      expected,
      remedy: 'Shorten the life of access tokens at the provider',
      change: { maxTokenAge: seconds },
      condition: `maxTokenAge: only if the provider cannot shorten the life; a stolen token is valid as long`,
    })
    return { ...check, seen }
  }
}

/** Returns an RFC 3339 time, or the number if there is none. */
function timeOf(seconds: number): string {
  const date = new Date(Math.floor(seconds) * 1000)
  return Number.isNaN(date.getTime()) ? `${seconds}` : date.toISOString().replace('.000', '')
}

/**
 * How long a regular expression can take. The engines of Node and workerd try one alternative after
 * another, so `^(a+)+$` takes 2^n steps for a text of n characters, and nothing can interrupt it.
 */

/** Steps of one match, which take about 10 ms. */
const MAX_STEPS = 1_000_000
/** recheck needs less than a second for most expressions, on any machine. */
const TIMEOUT_MS = 10_000
/** Larger counts have as many states. The same expression without a bound takes at least as long. */
const MAX_COUNT = 9
const COUNTED = /\{(\d+)(,(\d*))?\}/g

export interface RunTimes {
  /**
   * Returns why an expression is not safe for texts of up to `maxLength` UTF-16 code units (default:
   * any length). Undefined: its run time is linear, or small.
   */
  mistakeIn(expression: RegExp, maxLength?: number): string | undefined
}

type RunTime = 'linear' | 'exponential' | 'unknown' | { readonly degree: number }

/** Loads the checker: 3 MB of code. It examines an expression for at most `timeoutMs`. */
export async function loadRunTimes(timeoutMs = TIMEOUT_MS): Promise<RunTimes> {
  const { default: recheck } = await import('recheck/lib/browser.js')
  const known = new Map<string, RunTime>()

  function runTimeOf({ source, flags }: RegExp): RunTime {
    const key = `${flags}/${source}`
    const before = known.get(key)
    if (before !== undefined) return before
    const runTime = measured(withoutLargeCounts(source), flags)
    known.set(key, runTime)
    return runTime
  }

  function measured(source: string, flags: string): RunTime {
    try {
      const result = recheck.checkSync(source, flags, { timeout: timeoutMs })
      if (result.status === 'safe') return 'linear'
      if (result.status === 'unknown') return 'unknown'
      const { complexity } = result
      return complexity.type === 'polynomial' ? { degree: complexity.degree } : 'exponential'
    } catch {
      // Too large for its stack.
      return 'unknown'
    }
  }

  return {
    mistakeIn(expression, maxLength = Number.POSITIVE_INFINITY) {
      const runTime = runTimeOf(expression)
      if (runTime === 'linear') return undefined
      if (runTime === 'exponential') return 'takes exponential time for some texts'
      if (runTime === 'unknown') return 'is too complex to prove that its run time is linear'
      const { degree } = runTime
      if (maxLength ** degree <= MAX_STEPS) return undefined
      const longest = Math.floor(MAX_STEPS ** (1 / degree))
      return `takes time of degree ${degree} in the length of the text; at most ${longest} characters are safe`
    },
  }
}

/** `{0,4096}` becomes `*`, and `{8,}` becomes `+`. */
function withoutLargeCounts(source: string): string {
  return source.replaceAll(COUNTED, (count, min: string, range?: string, max?: string) => {
    const largest = Math.max(Number(min), Number(max ?? 0))
    if (largest <= MAX_COUNT && (range === undefined || max !== '')) return count
    return Number(min) === 0 ? '*' : '+'
  })
}

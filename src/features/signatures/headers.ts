/** Searches the request headers that a policy names. */
import type { Verdict } from '../../inspection/judge.ts'
import { SIGNATURES, scan } from './scanner.ts'
import type { VerdictCache } from './verdict-cache.ts'

type Received = ReadonlyMap<string, string>

/** Rules for hosts inside a network: `Referer` and `X-Forwarded-Host` name such hosts in an intranet. */
const HOST_RULES = new Set<string>([
  'ssrf_target.metadata',
  'ssrf_target.internal',
  'ssrf_target.development',
])
const ABOUT_HOSTS = SIGNATURES.filter(({ id }) => HOST_RULES.has(id)).reduce(
  (bits, { bit }) => bits | bit,
  0,
)

/**
 * Creates the search of the headers with these names, `x-*` for all that start with `x-`. Does not
 * apply the rules for hosts.
 */
export function createHeaderSearch(names: readonly string[], cache: VerdictCache) {
  const lowerCase = names.map((name) => name.toLowerCase())
  const exact = lowerCase.filter((name) => !name.endsWith('*'))
  const starts = lowerCase.filter((name) => name.endsWith('*')).map((name) => name.slice(0, -1))

  return function verdictOfHeaders(received: Received): Verdict {
    let verdict: Verdict = 0
    for (const name of exact) {
      const value = received.get(name)
      if (value !== undefined) verdict |= scan(value, cache)
    }
    if (starts.length > 0)
      for (const [name, value] of received)
        if (starts.some((start) => name.startsWith(start))) verdict |= scan(value, cache)
    return verdict & ~ABOUT_HOSTS
  }
}

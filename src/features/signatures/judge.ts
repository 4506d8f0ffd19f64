import { pathOf } from '../../http/path.ts'
import type { RequestScan, SignatureJudge, Verdict } from '../../inspection/judge.ts'
import { DEFAULT_SIGNATURES, type SignaturesDefinition } from './definition.ts'
import { multipartInspection } from './multipart.ts'
import { createVerdictReader, SIGNATURES, scan } from './scanner.ts'
import { createVerdictCache, type VerdictCache } from './verdict-cache.ts'

/** One cache for all routes of an isolate: a verdict does not depend on the route. */
const verdicts = createVerdictCache()

/** Creates the judge of a route. */
export function createSignatureJudge(definition: SignaturesDefinition): SignatureJudge {
  const { mode, headers, ...scoring } = { ...DEFAULT_SIGNATURES, ...definition }
  const verdictOfHeaders = createHeaderSearch(headers, verdicts)
  const signaturesIn = createVerdictReader(scoring)
  return {
    feature: 'signatures',
    mode,
    tally: verdicts.tally,
    multipartInspection,
    begin(url, received) {
      let verdict: Verdict = verdictOfHeaders(received)
      const requestScan = {
        add(text: string) {
          verdict |= scan(text, verdicts)
        },
        get verdict() {
          return verdict
        },
      }
      addPath(url, requestScan)
      return requestScan
    },
    denialsOf(verdict) {
      return signaturesIn(verdict).map((signature) => ({ code: 'signature_matched', signature }))
    },
  }
}

/** Matches most paths. They contain nothing that a signature could match. */
const PLAIN_PATH = /^[\w/.~-]*$/

/** A segment that could be Base64. */
const LONG_SEGMENT = /[\w-]{12}/

/** Scans the decoded segments of a URL's path. Does NOT refuse a path: `canonicalPath` does. */
function addPath(url: string, requestScan: RequestScan): void {
  const path = pathOf(url)
  if (PLAIN_PATH.test(path) && !LONG_SEGMENT.test(path)) return
  for (const segment of path.split('/')) requestScan.add(decoded(segment))
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}

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
function createHeaderSearch(names: readonly string[], cache: VerdictCache) {
  const lowerCase = names.map((name) => name.toLowerCase())
  const exact = lowerCase.filter((name) => !name.endsWith('*'))
  const starts = lowerCase.filter((name) => name.endsWith('*')).map((name) => name.slice(0, -1))

  return function verdictOfHeaders(received: ReadonlyMap<string, string>): Verdict {
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

import { pathOf } from '../../http/path.ts'
import type { Tally } from '../../isolate/tally.ts'
import type { Denial } from '../../problems/reasons.ts'
import type { Feature } from '../../validators/feature.ts'
import type { Mode } from '../../validators/mode.ts'
import { DEFAULT_SIGNATURES, type SignaturesDefinition } from './definition.ts'
import { createVerdictReader, scan } from './scanner.ts'
import { createVerdictCache, type Verdict } from './verdict-cache.ts'

/** One cache for all routes of an isolate: a verdict does not depend on the route. */
const verdicts = createVerdictCache()

export interface RequestScan {
  add(text: string): void
  /** The rules that any of the texts matched. */
  readonly verdict: Verdict
}

/** The attack signatures of a route, as `signatures()` creates them. */
export interface SignatureJudge extends Feature<'signatures'> {
  readonly mode: Mode
  /** Hits and misses of the verdict cache, which all routes share. */
  readonly tally: Tally
  /** Starts with the path of the URL. */
  begin(url: string): RequestScan
  /** Returns the denials (403) for a verdict: one for each category that reaches the threshold. */
  denialsOf(verdict: Verdict): readonly Denial[]
}

/** Creates the judge of a route. */
export function createSignatureJudge(definition: SignaturesDefinition): SignatureJudge {
  const { mode, ...scoring } = { ...DEFAULT_SIGNATURES, ...definition }
  const signaturesIn = createVerdictReader(scoring)
  return {
    feature: 'signatures',
    mode,
    tally: verdicts.tally,
    begin(url) {
      let verdict: Verdict = 0
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

/** Scans the decoded segments of a URL's path. Does NOT refuse a path: `canonicalPath` does. */
function addPath(url: string, requestScan: RequestScan): void {
  const path = pathOf(url)
  if (PLAIN_PATH.test(path)) return
  for (const segment of path.split('/')) requestScan.add(decoded(segment))
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}

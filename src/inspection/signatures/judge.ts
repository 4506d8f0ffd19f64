/** Decides from the matched signatures whether a request is denied. */

import type { Tally } from '../../isolate/tally.ts'
import type { Denial } from '../../problems/reasons.ts'
import type { Feature } from '../../validators/feature.ts'
import type { Mode } from '../../validators/mode.ts'
import { DEFAULT_SIGNATURES, type SignaturesDefinition } from './definition.ts'
import { createVerdictReader } from './scanner.ts'
import { createTextTaker, type TextTaker, takePath } from './text-taker.ts'
import { createVerdictCache, type Verdict } from './verdict-cache.ts'

/**
 * One cache for all routes of an isolate: a verdict contains the matched rules and does not depend
 * on the route.
 */
const verdicts = createVerdictCache()

/** The attack signatures of a route, as `signatures()` creates them. */
export interface SignatureJudge extends Feature<'signatures'> {
  readonly mode: Mode
  /** Hits and misses of the verdict cache, which all routes share. */
  readonly tally: Tally
  /** Starts the scan of a request with the path of its URL. */
  begin(url: string): TextTaker
  /**
   * Returns the denials (403) for a verdict, one for each category; an empty list below the
   * threshold.
   */
  denialsOf(verdict: Verdict): readonly Denial[]
}

/** Creates the judge of a route, with defaults for missing settings. */
export function createSignatureJudge(definition: SignaturesDefinition): SignatureJudge {
  const { mode, ...scoring } = { ...DEFAULT_SIGNATURES, ...definition }
  const signaturesIn = createVerdictReader(scoring)
  return {
    feature: 'signatures',
    mode,
    tally: verdicts.tally,
    begin(url) {
      const texts = createTextTaker(verdicts)
      takePath(url, texts)
      return texts
    },
    denialsOf(verdict) {
      return signaturesIn(verdict).map((signature) => ({ code: 'signature_matched', signature }))
    },
  }
}

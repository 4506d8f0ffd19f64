/** From what the texts of a request matched to whether it is refused. */
import type { Denial } from '../../errors.ts'
import type { Mode } from '../../validators/mode.ts'
import { DEFAULT_SIGNATURES, type SignaturesDefinition } from '../definition.ts'
import { createVerdictReader } from './scanner.ts'
import { createTextTaker, type TextTaker, takePath } from './text-taker.ts'
import { createVerdictCache, type Verdict } from './verdict-cache.ts'

/** One for all routes of an isolate: a verdict says what matched, whatever a route makes of it. */
const verdicts = createVerdictCache()
/** How often a text had been scanned before. */
export const verdictTally = verdicts.tally

export interface SignatureJudge {
  readonly mode: Mode
  /** Begins a request, with the path of its URL. */
  begin(url: string): TextTaker
  /** The refusals (403) that a verdict stands for, one a category; none below the threshold. */
  denialsOf(verdict: Verdict): readonly Denial[]
}

/** Makes the judge of a route, defaults filled in. */
export function createSignatureJudge(definition: SignaturesDefinition): SignatureJudge {
  const { mode, ...scoring } = { ...DEFAULT_SIGNATURES, ...definition }
  const signaturesIn = createVerdictReader(scoring)
  return {
    mode,
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

/** All signatures over one text, and what their scores come to for a request. */
import type { SignatureCategory, SignatureId } from '../../errors.ts'
import { commandInjection } from './command-injection.ts'
import { crossSiteScripting } from './cross-site-scripting.ts'
import { pathTraversal } from './path-traversal.ts'
import { anyOf, oneOf } from './pattern.ts'
import { decodedOnce } from './readings.ts'
import type { SignatureSet } from './signature-set.ts'
import { sqlInjection } from './sql-injection.ts'
import { ssrfTarget } from './ssrf-target.ts'
import type { Verdict, VerdictCache } from './verdict-cache.ts'

const SETS: readonly SignatureSet[] = [
  sqlInjection,
  pathTraversal,
  commandInjection,
  ssrfTarget,
  crossSiteScripting,
]

/** What tells by itself, in whatever prose it stands. */
const TELLING = oneOf(
  String.raw`\.\. -- @@ xp_ 169\.254 metadata\.google`,
  String.raw`\b${oneOf('union select order having procedure exec execute waitfor')}\b`,
)
/** Names, spaces and punctuation of prose; nothing that starts an attack is among them. */
const PLAIN = anyOf('i', String.raw`^(?![^]{0,200}${TELLING})[\w .,!?+@\u00a1-\uffff-]{0,200}$`)

interface PlacedRule {
  readonly id: SignatureId
  readonly category: SignatureCategory
  readonly score: number
  readonly bit: Verdict
}

/** Every rule has a bit of a verdict; there is room for 30, which V8 keeps without allocating. */
export const SIGNATURES: readonly PlacedRule[] = SETS.flatMap(({ category, rules }) =>
  rules.map(([name, score]) => ({ id: `${category}.${name}` as const, category, score })),
).map((rule, index) => ({ ...rule, bit: 1 << index }))

/** How far the bits of each set are shifted in a verdict. */
const SHIFTS: readonly number[] = SETS.map((_, index) =>
  SETS.slice(0, index).reduce((sum, { rules }) => sum + rules.length, 0),
)

/**
 * The rules that a text matches, as it stands and decoded once more, out of `cache` where that
 * knows it. Takes time linear in the text's length. Does NOT decide: {@link createVerdictReader}.
 */
export function scan(text: string, cache: VerdictCache): Verdict {
  if (PLAIN.test(text)) return 0
  const known = cache.get(text)
  if (known !== undefined) return known
  const decoded = decodedOnce(text)
  const verdict = scanReading(text) | (decoded === undefined ? 0 : scanReading(decoded))
  cache.set(text, verdict)
  return verdict
}

function scanReading(text: string): Verdict {
  let verdict = 0
  for (let index = 0; index < SETS.length; index++)
    verdict |= (SETS[index]?.scan(text) ?? 0) << (SHIFTS[index] ?? 0)
  return verdict
}

export interface VerdictReaderOptions {
  /** The score of a category from which on a request is an attack of that kind. */
  readonly threshold: number
  readonly categories: readonly SignatureCategory[]
}

const NONE: readonly SignatureId[] = []

/**
 * Makes the reader of a request's verdict, the union of those of its texts: each rule counts once,
 * and scores are summed by category. Told is the heaviest rule of each category whose sum reaches
 * the threshold, in the order of `categories`.
 */
export function createVerdictReader({ threshold, categories }: VerdictReaderOptions) {
  return function signaturesIn(verdict: Verdict): readonly SignatureId[] {
    if (verdict === 0) return NONE
    return categories.flatMap((category) => {
      const matched = SIGNATURES.filter((rule) => rule.category === category && verdict & rule.bit)
      const sum = matched.reduce((total, { score }) => total + score, 0)
      if (sum < threshold) return NONE
      return matched.reduce((one, other) => (other.score > one.score ? other : one)).id
    })
  }
}

/** Operators and scripts of document databases, in values and names that should have none. */
import { anyOf, bitsOf, DECISIVE, oneOf, type SignatureSet } from './signature-set.ts'

const SCORES = { operator: DECISIVE, script: DECISIVE }
const BIT = bitsOf(SCORES)

/** No rule below matches a text without one of these. */
const SUSPICIOUS =
  /\$[a-z]|\bdb\.|[;|&]\s{0,4}(?:var|let|const|return|while|for|do|if|sleep|this)\b/i
const NAMES = oneOf(
  'ne eq gte? lte? n?in n?or and not regex where exists expr elemMatch function accumulator',
)
/** An operator as a name, as a step of a name (`user[$ne]`), and as a member in a text of JSON. */
const OPERATOR = anyOf(
  '',
  String.raw`^\$${NAMES}$`,
  String.raw`\[["']?\$${NAMES}["']?\]`,
  String.raw`[,{"']\s{0,4}\$${NAMES}["']?\s{0,4}:\s{0,4}[\w\[{"'/(-]`,
)
/**
 * A call of the shell of MongoDB, and a quote or a number that ends a value before a statement of
 * JavaScript. In code, a string has a second quote before its end.
 */
const SCRIPT = anyOf(
  '',
  String.raw`^[\s;"']*db\.[\w-]{1,64}\.` +
    oneOf(
      'insert find update remove delete drop aggregate count save replace bulkWrite mapReduce',
    ) +
    String.raw`\w{0,16}\s{0,4}\(`,
  String.raw`^(?:\d{0,20}|[^"']*["'])[\s)}\]]*(?:;|\|\||&&)\s*` +
    oneOf(
      String.raw`(?:var|let|const)\s{1,4}[\w$]{1,40}\s{0,4}= return\b(?!\s\w{1,20}\s\w)`,
      String.raw`while\s{0,4}\( for\s{0,4}\(\s{0,4}(?:var|let|;) if\s{0,4}\( do\s{0,4}\{`,
      String.raw`sleep\s{0,4}\(\s{0,4}\d this\.\w{1,64}`,
    ),
)

export const nosqlInjection: SignatureSet = {
  category: 'nosql_injection',
  scores: SCORES,
  scan(text) {
    if (!SUSPICIOUS.test(text)) return 0
    return (OPERATOR.test(text) ? BIT.operator : 0) | (SCRIPT.test(text) ? BIT.script : 0)
  },
}

/** Filters of directories (RFC 4515) in values that should be part of one. */
import { anyOf, bitsOf, DECISIVE, type SignatureSet } from './signature-set.ts'

const SCORES = { filter: DECISIVE }
const BIT = bitsOf(SCORES)

/** The rule below matches no text without one of these. */
const SUSPICIOUS = /\(\s{0,4}[&|!]|\)\(|:=/
const FILTER = anyOf(
  'i',
  // The value ends the surrounding filter, and starts another.
  String.raw`^[^()]*\)+\((?:[&|!](?:[()]|$)|[a-z][\w.;-]{0,63}[~<>]?=[^=])`,
  // A filter directly after a value. A filter alone is an ordinary setting.
  String.raw`^[^\s():]+\([&|]\s{0,4}\([&|!(\s]{0,9}[a-z\d][\w.:;-]{0,63}\s{0,4}[~<>]?=`,
  // A matching rule by its object identifier.
  String.raw`\b[a-z]{2,40}:(?:dn:)?(?:\d{1,9}\.){2,12}\d{1,9}:=`,
)
const CONDITIONS = /\([&|]\s{0,4}\(/
/** Conditions that are always true or false, and a search for passwords. */
const CONSTANT = /\(\s{0,4}(?:\d{1,9}=\d{1,9}\s{0,4}\)|userpassword\s{0,4}[~<>]?=)/i

export const ldapInjection: SignatureSet = {
  category: 'ldap_injection',
  scores: SCORES,
  scan(text) {
    if (!SUSPICIOUS.test(text)) return 0
    const isFound = FILTER.test(text) || (CONDITIONS.test(text) && CONSTANT.test(text))
    return isFound ? BIT.filter : 0
  },
}

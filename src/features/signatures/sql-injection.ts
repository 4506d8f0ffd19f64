import {
  anyOf,
  bitsOf,
  DECISIVE,
  FAINT,
  NOTABLE,
  oneOf,
  type SignatureSet,
} from './signature-set.ts'
import { breaksOutOfQuote, breaksOutOfValue } from './sql-break-out.ts'
import { tokenizeSql } from './sql-tokens.ts'

const SCORES = {
  break_out: DECISIVE,
  opening: FAINT,
  effect: NOTABLE,
  probe: FAINT,
  disguise: NOTABLE,
}
const BIT = bitsOf(SCORES)

/** Number of leading characters of a value in which words are counted. */
const MAX_VALUE_CHARS = 200
/** No rule below matches a text without one of these. */
const SUSPICIOUS =
  /['"(;=<>*#@`|&]|--|\b(?:union|select|order|group|having|procedure|like|is|in|between|waitfor|exec|xp_cmdshell)\b/i
/** The last three rules match no text without one of these. This pattern needs only one pass. */
const EFFECT_HINT =
  /sleep|benchm|_file|outfile|dumpfile|xp_|dbms|utl_|delay|xml|tvalue|blob|schema|@@|sys[ocdu]|pg_|sqlite|all_[tu]|v\$|mysql\.|dual|\/\*/i
/** Functions and statements that have a side effect or cause a delay. */
const SLOW_OR_ACTING = anyOf(
  'i',
  String.raw`\b${oneOf(
    'pg_sleep sleep benchmark randomblob load_file xp_cmdshell xp_dirtree xp_regread',
    String.raw`dbms_pipe\.receive_message dbms_lock\.sleep extractvalue updatexml`,
    String.raw`utl_http\.request utl_inaddr\.get_host_\w{4,7}`,
  )}[\s'"]{0,4}[(/]`,
  String.raw`\bwaitfor\s{1,4}delay\s{0,4}['"]|\binto\s{1,4}(?:out|dump)file\s{0,4}['"]`,
  String.raw`\bxp_cmdshell\b`,
)
/** Names that reveal the structure of a database. */
const CATALOGUE = anyOf(
  'i',
  String.raw`\binformation_schema\b|@@(?:global\.)?\w|\bsys(?:objects|columns|databases|users)\b`,
  String.raw`\bpg_(?:catalog|user|shadow|tables)\b|\bsqlite_(?:master|version)\b`,
  String.raw`\ball_(?:tables|users|tab_columns)\b|\bv\$version\b|\bmysql\.user\b`,
  String.raw`\bfrom\s{1,4}dual\b`,
)
/** Keywords that comments separate or hide. */
const COMMENTED_KEYWORDS =
  /\b(?:union|select|from|where|and|or|all|by|order|insert|drop)(?:\/\*[^*]{0,40}\*\/|\/\*!\d{0,6})|\/\*!\d{0,6}\s{0,4}(?:union|select|from|where|and|or|all|order)\b/i
/** The start of a statement, or of a clause that continues one. */
const BEGINNING = anyOf(
  'i',
  String.raw`^[\s(;+-]*(?:select[\s(*/+]|case\s{1,4}when\b|waitfor\s|declare\s{1,4}@)`,
  String.raw`^[\s(;+-]*exec(?:ute)?\s{1,4}(?:master|xp_|sp_|immediate)`,
  String.raw`^[\s(;+-]*(?:if|benchmark|sleep|pg_sleep)\s{0,2}\(`,
  String.raw`^[\s(;)'",+-]*(?:(?:and|or|xor|having|where|union)\b|(?:order|group)\s{1,4}by\b)`,
  String.raw`^[\s(;)'",+-]*(?:\|\||&&)`,
)

export const sqlInjection: SignatureSet = {
  category: 'sql_injection',
  scores: SCORES,
  scan(text) {
    if (!SUSPICIOUS.test(text)) return 0
    let found = breaksOut(text) ? BIT.break_out : 0
    if (BEGINNING.test(text)) found |= BIT.opening
    if (!EFFECT_HINT.test(text)) return found
    if (SLOW_OR_ACTING.test(text)) found |= BIT.effect
    if (CATALOGUE.test(text)) found |= BIT.probe
    if (text.includes('/*') && COMMENTED_KEYWORDS.test(text)) found |= BIT.disguise
    return found
  },
}

/**
 * Reads the text as part of a statement: as a number, and within quotes of either kind. Only the
 * first quote can end a value. Text after a later quote is a string again, or is not SQL.
 */
function breaksOut(text: string): boolean {
  if (breaksOutOfValue(tokenizeSql(text, 0))) return true
  for (const quote of QUOTES) {
    const plain = endOfValue(text, quote, false)
    if (breaksOutAt(text, plain)) return true
    const escaped = text.includes('\\') ? endOfValue(text, quote, true) : plain
    if (escaped !== plain && breaksOutAt(text, escaped)) return true
  }
  return false
}

const QUOTES = ["'", '"'] as const
const SEVERAL_WORDS = /\S\s{1,8}\S/

function breaksOutAt(text: string, end: number): boolean {
  if (end === -1) return false
  const isProse = SEVERAL_WORDS.test(text.slice(0, Math.min(end, MAX_VALUE_CHARS)))
  return breaksOutOfQuote(tokenizeSql(text, end), isProse)
}

/** Returns the place after the quote that ends a value, or -1. A doubled quote is one character. */
function endOfValue(text: string, quote: string, escapes: boolean): number {
  let at = text.indexOf(quote)
  while (at !== -1) {
    const isDoubled = text[at + 1] === quote
    const isEscaped = escapes && text[at - 1] === '\\' && text[at - 2] !== '\\'
    if (!isDoubled && !isEscaped) return at + 1
    at = text.indexOf(quote, at + (isDoubled ? 2 : 1))
  }
  return -1
}

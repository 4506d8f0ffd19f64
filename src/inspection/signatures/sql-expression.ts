/** Parses SQL expressions, as far as needed to distinguish a condition from a sentence. */
import { wordsOf } from './signature-set.ts'
import type { SqlToken, SqlTokens } from './sql-tokens.ts'

/** The content of a string that the surrounding statement closes, as in `or 'a`. */
const LEFT_OPEN = /^[\w%]{0,16}$/

/** Unary operators, and words that do not change the result. */
const PREFIXES = wordsOf('not binary - + ~ ! @')
const LITERALS = wordsOf('null true false')
/** Functions with which attacks query, delay or read. */
const ATTACK_FUNCTIONS = wordsOf(
  'sleep benchmark pg_sleep extractvalue updatexml load_file randomblob char chr concat',
  'concat_ws group_concat ascii substr substring mid version user current_user session_user',
  'database cast convert exp json_extract gtid_subset name_const elt rand make_set if iif',
  'ifnull nullif isnull ord hex unhex length count exists row bin rpad left right db_name',
  'dbms_pipe.receive_message utl_inaddr.get_host_address utl_inaddr.get_host_name',
  'utl_http.request ctxsys.drithsx.sn xmltype pg_read_file lo_import now sysdate',
)

/** Reports whether a token is a call of a function that attacks use. */
export function isAttackCall({ kind, text }: SqlToken): boolean {
  return kind === 'call' && ATTACK_FUNCTIONS.has(text)
}

/** Returns the index after unary operators and words that do not change the result. */
export function afterPrefixes(at: SqlTokens, index: number): number {
  let end = index
  while (PREFIXES.has(at(end).text)) end += 1
  return end
}

/** Reports whether a query can select the expression. The words after "select" in prose differ. */
export function isSelected(at: SqlTokens, index: number): boolean {
  const { kind, text } = at(index)
  if (kind === 'word' && !LITERALS.has(text)) {
    const next = at(index + 1)
    return text.startsWith('@') || next.kind === 'comma' || next.text === 'from'
  }
  return text === '*' || isOperand(at(index))
}

/** Reports whether a subquery, or a call of a function that attacks use, starts at an index. */
export function isQuery(at: SqlTokens, index: number): boolean {
  const start = afterPrefixes(at, index)
  return at(start).text === 'select' ? isSelected(at, start + 1) : isAttackCall(at(start))
}

function isOperand({ kind }: SqlToken): boolean {
  return kind === 'number' || kind === 'text' || kind === 'word' || kind === 'call'
}

function isLiteral({ kind, text }: SqlToken): boolean {
  return kind === 'number' || kind === 'text' || kind === 'open_text' || LITERALS.has(text)
}

/** Returns the index after an operand and its arithmetic; without one, after its prefixes. */
export function operandEnd(at: SqlTokens, index: number): number {
  let end = afterPrefixes(at, index)
  if (!isOperand(at(end))) return end
  end += 1
  while (at(end).kind === 'arithmetic' && isOperand(at(end + 1))) end += 2
  return end
}

/** Reports whether the rest of the surrounding statement stays valid after an index. */
export function closes(at: SqlTokens, index: number): boolean {
  const { kind, text } = at(index)
  return kind === 'cut' || (kind === 'open_text' && LEFT_OPEN.test(text))
}

/**
 * Reports whether a condition follows `and` or `or` after a value: a comparison with a literal, a
 * query, or a literal at the end.
 */
export function isCondition(at: SqlTokens, index: number): boolean {
  if (isQuery(at, index)) return true
  const first = afterPrefixes(at, index)
  const operand = at(first)
  if (operand.kind === 'open_text') return LEFT_OPEN.test(operand.text)
  const end = operandEnd(at, index)
  if (end === first) return false
  const next = at(end)
  if (next.kind === 'comparison') {
    if (isQuery(at, end + 1) || isLiteral(operand) || isLiteral(at(end + 1))) return true
    return next.text === 'is' || closes(at, operandEnd(at, end + 1))
  }
  if (!isLiteral(operand)) return false
  return closes(at, end) || (next.kind === 'arithmetic' && closes(at, end + 1))
}

/** Reports whether a comparison of literals (`1=1`, `'a'='a`) or a subquery starts at an index. */
export function isTautology(at: SqlTokens, index: number): boolean {
  if (isQuery(at, index)) return true
  const end = operandEnd(at, index)
  if (end === index || !isLiteral(at(end - 1))) return false
  if (at(end).kind !== 'comparison') return at(end).kind === 'cut'
  if (isQuery(at, end + 1)) return true
  const behind = operandEnd(at, end + 1)
  const { kind } = at(behind)
  if (closes(at, behind)) return true
  return isLiteral(at(end + 1)) && (kind === 'end' || kind === 'logic' || kind === 'semicolon')
}

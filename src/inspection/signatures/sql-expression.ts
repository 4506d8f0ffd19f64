/** Expressions of SQL, as far as they tell a condition from a sentence. */
import type { SqlToken, SqlTokens } from './sql-tokens.ts'

/** A text that is left open for the statement to close, as in `or 'a`. */
const LEFT_OPEN = /^[\w%]{0,16}$/

/** Unary, or of no consequence. */
export const PREFIXES: ReadonlySet<string> = new Set(['not', 'binary', '-', '+', '~', '!', '@'])
const LITERALS: ReadonlySet<string> = new Set(['null', 'true', 'false'])
/** Functions by which an attack asks, waits or reads; `if` and `char` only mean something here. */
const ASKING: ReadonlySet<string> = new Set(
  (
    'sleep benchmark pg_sleep extractvalue updatexml load_file randomblob char chr concat ' +
    'concat_ws group_concat ascii substr substring mid version user current_user session_user ' +
    'database cast convert exp json_extract gtid_subset name_const elt rand make_set if iif ' +
    'ifnull nullif isnull ord hex unhex length count exists row bin rpad left right db_name ' +
    'dbms_pipe.receive_message utl_inaddr.get_host_address utl_inaddr.get_host_name ' +
    'utl_http.request ctxsys.drithsx.sn xmltype pg_read_file lo_import now sysdate'
  ).split(' '),
)

/** A call of a function that an attack would make. */
export function isAsking({ kind, text }: SqlToken): boolean {
  return kind === 'call' && ASKING.has(text)
}

/** What a query may select, and a sentence about selecting does not. */
export function isSelected(at: SqlTokens, index: number): boolean {
  const { kind, text } = at(index)
  if (kind === 'word' && !LITERALS.has(text)) {
    const next = at(index + 1)
    return text.startsWith('@') || next.kind === 'comma' || next.text === 'from'
  }
  return kind === 'call' || kind === 'number' || kind === 'text' || text === '*' || kind === 'word'
}

/** A query within, or a call that asks. */
export function isQuery(at: SqlTokens, index: number): boolean {
  const { text } = at(index)
  if (PREFIXES.has(text)) return isQuery(at, index + 1)
  return text === 'select' ? isSelected(at, index + 1) : isAsking(at(index))
}

function isOperand({ kind }: SqlToken): boolean {
  return kind === 'number' || kind === 'text' || kind === 'word' || kind === 'call'
}

function isLiteral({ kind, text }: SqlToken): boolean {
  return kind === 'number' || kind === 'text' || kind === 'open_text' || LITERALS.has(text)
}

/** The index behind an operand and what is computed with it; `index` where none stands. */
export function operandEnd(at: SqlTokens, index: number): number {
  let end = index
  while (PREFIXES.has(at(end).text)) end += 1
  if (!isOperand(at(end))) return end
  end += 1
  while (at(end).kind === 'arithmetic' && isOperand(at(end + 1))) end += 2
  return end
}

/** Whether nothing is left over that would break the statement. */
export function closes(at: SqlTokens, index: number): boolean {
  const { kind, text } = at(index)
  return kind === 'cut' || (kind === 'open_text' && LEFT_OPEN.test(text))
}

/** What follows `and` or `or` behind a value: a comparison with a literal, or all there is. */
export function isCondition(at: SqlTokens, index: number): boolean {
  if (isQuery(at, index)) return true
  let first = index
  while (PREFIXES.has(at(first).text)) first += 1
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

/** `1=1`, `'a'='a`: what compares two literals filters nothing, or everything. */
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

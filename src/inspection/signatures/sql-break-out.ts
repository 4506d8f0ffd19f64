/** What may follow a value in an SQL statement, and hardly ever follows a quote in prose. */
import type { SqlToken } from './sql-tokens.ts'

/** A value was ended by its quote, or was none that has quotes. */
export type SqlPlace = 'quoted' | 'bare'

const NOTHING: SqlToken = { kind: 'end', text: '' }
/** Longest text that is left open for the statement to close, as in `or 'a`. */
const MAX_OPEN_CHARS = 16

/** Functions by which an attack asks, waits or reads; `if` and `char` only mean something here. */
const ASKING: ReadonlySet<string> = new Set(
  (
    'sleep benchmark pg_sleep extractvalue updatexml load_file randomblob char chr concat ' +
    'concat_ws group_concat ascii substr substring mid version user current_user session_user ' +
    'database cast convert exp json_extract gtid_subset name_const elt rand make_set if iif ' +
    'ifnull nullif ord hex unhex length count exists row bin rpad left right db_name ' +
    'dbms_pipe.receive_message utl_inaddr.get_host_address utl_inaddr.get_host_name ' +
    'utl_http.request ctxsys.drithsx.sn xmltype pg_read_file lo_import now sysdate'
  ).split(' '),
)
/** Words that begin a statement, and what must follow: words, or anything where there are none. */
const STATEMENTS: ReadonlyMap<string, readonly string[]> = new Map([
  ['drop', ['table', 'database', 'schema', 'view', 'index', 'user', 'procedure', 'function']],
  ['alter', ['table', 'database', 'user', 'login', 'session', 'system']],
  ['create', ['table', 'user', 'database', 'function', 'or', 'procedure', 'login', 'view']],
  ['insert', ['into']],
  ['delete', ['from']],
  ['truncate', ['table']],
  ['merge', ['into']],
  ['waitfor', ['delay', 'time']],
  ['grant', ['all', 'select', 'execute', 'create', 'connect', 'dba']],
  ['copy', []],
  ['update', []],
  ['exec', []],
  ['execute', []],
  ['declare', []],
  ['select', []],
  ['shutdown', []],
])
/** Unary, or of no consequence. */
const PREFIXES: ReadonlySet<string> = new Set(['not', 'binary', '-', '+', '~', '!', '@'])
const LITERALS: ReadonlySet<string> = new Set(['null', 'true', 'false'])

/**
 * Whether tokens go on where a value ended: with a condition, a union, another statement, a clause,
 * a call of a telling function, or a comment that cuts the rest off. `bare` tokens begin with the
 * value itself.
 */
export function breakOutOf(tokens: readonly SqlToken[], place: SqlPlace): boolean {
  const at = (index: number): SqlToken => tokens[index] ?? NOTHING
  let start = 0
  let isLiteral = place === 'quoted'
  if (place === 'bare') {
    if (at(0).text === 'union') return isUnion(at, 0)
    while (PREFIXES.has(at(start).text)) start += 1
    const value = at(start)
    if (value.kind === 'semicolon') return isStatement(at, start + 1)
    if (value.kind === 'logic') return isTautology(at, start + 1)
    isLiteral = value.kind === 'number' || value.kind === 'text'
    if (!isLiteral && value.kind !== 'word') return false
    start += 1
  }
  const next = at(start)
  switch (next.kind) {
    case 'cut':
      return place === 'quoted'
    case 'semicolon':
      return isStatement(at, start + 1) || (place === 'quoted' && at(start + 1).kind === 'cut')
    case 'logic':
      return isLiteral ? isCondition(at, start + 1, place) : isTautology(at, start + 1)
    case 'comparison':
      return place === 'quoted' && closes(at, operandEnd(at, start + 1))
    case 'arithmetic':
      return isLiteral && (isQuery(at, start + 1) || (place === 'quoted' && isPlain(at, start + 1)))
    case 'word':
      return isClause(at, start, place)
    default:
      return false
  }
}

type At = (index: number) => SqlToken

function isStatement(at: At, index: number): boolean {
  const { text } = at(index)
  const followers = STATEMENTS.get(text)
  if (followers === undefined) return false
  const next = at(index + 1)
  if (followers.length > 0) return followers.includes(next.text)
  if (text === 'shutdown') return next.kind === 'end' || next.kind === 'cut'
  if (text === 'select') return isSelected(at, index + 1)
  if (text === 'update') return at(index + 2).text === 'set'
  if (text === 'declare') return next.text.startsWith('@')
  return next.kind === 'word' && /^(?:xp_|sp_|master|cmd|immediate|@)|_|\./.test(next.text)
}

function isUnion(at: At, index: number): boolean {
  const next = at(index + 1).text
  const select = next === 'all' || next === 'distinct' ? index + 2 : index + 1
  return at(select).text === 'select' && isSelected(at, select + 1)
}

/** What a query may select, and a sentence about selecting does not. */
function isSelected(at: At, index: number): boolean {
  const { kind, text } = at(index)
  if (kind === 'word' && !LITERALS.has(text)) {
    const next = at(index + 1)
    return text.startsWith('@') || next.kind === 'comma' || next.text === 'from'
  }
  return kind === 'call' || kind === 'number' || kind === 'text' || text === '*' || kind === 'word'
}

/** `(select`, or a function that an attack would call. */
function isQuery(at: At, index: number): boolean {
  const { kind, text } = at(index)
  if (PREFIXES.has(text)) return isQuery(at, index + 1)
  return text === 'select' ? true : kind === 'call' && ASKING.has(text)
}

function isOperand({ kind }: SqlToken): boolean {
  return kind === 'number' || kind === 'text' || kind === 'word' || kind === 'call'
}

function isLiteralToken({ kind, text }: SqlToken): boolean {
  return kind === 'number' || kind === 'text' || kind === 'open_text' || LITERALS.has(text)
}

/** The index behind an operand and what is computed with it. */
function operandEnd(at: At, index: number): number {
  let end = index
  while (PREFIXES.has(at(end).text)) end += 1
  if (!isOperand(at(end))) return end
  end += 1
  while (at(end).kind === 'arithmetic' && isOperand(at(end + 1))) end += 2
  return end
}

/** Whether nothing is left over that would break the statement. */
function closes(at: At, index: number): boolean {
  const { kind, text } = at(index)
  return kind === 'cut' || (kind === 'open_text' && text.length <= MAX_OPEN_CHARS)
}

function isCondition(at: At, index: number, place: SqlPlace): boolean {
  if (isQuery(at, index)) return true
  let first = index
  while (PREFIXES.has(at(first).text)) first += 1
  const operand = at(first)
  if (operand.kind === 'open_text')
    return operand.text.length <= MAX_OPEN_CHARS && !/\s/.test(operand.text)
  const end = operandEnd(at, index)
  if (end === first) return false
  const next = at(end)
  if (next.kind === 'comparison') {
    const second = at(end + 1)
    if (isQuery(at, end + 1)) return true
    if (isLiteralToken(operand) || isLiteralToken(second) || next.text === 'is') return true
    return closes(at, operandEnd(at, end + 1))
  }
  return isLiteralToken(operand) && (next.kind === 'cut' || (place === 'bare' && isJoined(at, end)))
}

/** `or 1 or ...`, `and 1 union ...`. */
function isJoined(at: At, index: number): boolean {
  const { kind } = at(index)
  return kind === 'word' && isClause(at, index, 'bare')
}

/** `1=1`, `'a'='a`: what compares two literals filters nothing, or everything. */
function isTautology(at: At, index: number): boolean {
  if (isQuery(at, index) && at(index).text !== 'select') return true
  const end = operandEnd(at, index)
  if (at(end).kind !== 'comparison') return false
  const after = at(operandEnd(at, end + 1)).kind
  const stops = after === 'end' || after === 'cut' || after === 'logic' || after === 'semicolon'
  return isLiteralToken(at(end - 1)) && isLiteralToken(at(end + 1)) && stops
}

/** `'-0 --`, `'+'`, `'*'`: computed with, and then closed. */
function isPlain(at: At, index: number): boolean {
  return closes(at, index) || (isLiteralToken(at(index)) && closes(at, index + 1))
}

/** Clauses that stand behind a condition. */
function isClause(at: At, index: number, place: SqlPlace): boolean {
  const { text } = at(index)
  const next = at(index + 1)
  switch (text) {
    case 'union':
      return isUnion(at, index)
    case 'order':
    case 'group': {
      if (next.text !== 'by') return false
      let end = operandEnd(at, index + 2)
      while (at(end).kind === 'comma') end = operandEnd(at, end + 1)
      const { kind } = at(end)
      return (
        kind === 'cut' || (place === 'bare' && kind === 'end' && at(index + 2).kind === 'number')
      )
    }
    case 'having':
      return isTautology(at, index + 1) || (place === 'quoted' && isCondition(at, index + 1, place))
    case 'limit':
    case 'offset':
      return next.kind === 'number' && closes(at, index + 2)
    case 'procedure':
      return next.text === 'analyse'
    case 'into':
      return next.text === 'outfile' || next.text === 'dumpfile'
    case 'waitfor':
      return next.text === 'delay'
    case 'where':
      return isTautology(at, index + 1)
    default:
      return false
  }
}

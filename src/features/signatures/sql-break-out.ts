/**
 * Detects what an injection puts after a value in an SQL statement, and prose rarely does. Parses
 * expressions only as far as needed to distinguish a condition from a sentence.
 */
import { wordsOf } from './signature-set.ts'
import type { SqlToken, SqlTokens } from './sql-tokens.ts'

/** The content of a string that the surrounding statement closes, as in `or 'a`. */
const LEFT_OPEN = /^[\w%]*$/

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
/** Words that start a statement, each with the words of which one must follow. */
const STATEMENTS: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  Object.entries({
    drop: 'table database schema view index user procedure function',
    alter: 'table database user login session system',
    create: 'table user database function or procedure login view',
    insert: 'into',
    delete: 'from',
    truncate: 'table',
    merge: 'into',
    waitfor: 'delay time',
    grant: 'all select execute create connect dba resource',
    begin: 'declare select exec execute dbms_lock.sleep',
    if: 'not select exists 1 is_srvrolemember system_user user',
  }).map(([word, followers]) => [word, wordsOf(followers)]),
)

/**
 * Reports whether the tokens after the quote of a value continue a statement. In prose, `"-"` is a
 * character and not a subtraction.
 */
export function breaksOutOfQuote(at: SqlTokens, isProse: boolean): boolean {
  switch (at(0).kind) {
    case 'cut':
      return true
    case 'semicolon':
      return isStatement(at, 1) || at(1).kind === 'cut'
    case 'logic':
      return isCondition(at, 1)
    case 'comparison':
      return !isProse && closes(at, operandEnd(at, 1))
    case 'arithmetic':
      return isQuery(at, 1) || (!isProse && isComputed(at, 1))
    case 'comma':
      return isListed(at, 1)
    case 'word':
    case 'call':
      return isClause(at, 0) || isCutOrder(at, 0)
    default:
      return false
  }
}

/** Reports whether tokens that start with a value, or without one, continue a statement. */
export function breaksOutOfValue(at: SqlTokens): boolean {
  let start = afterPrefixes(at, 0)
  const value = at(start)
  if (value.kind === 'semicolon') return isStatement(at, start + 1)
  if (value.kind === 'logic') return isTautology(at, start + 1)
  if (value.kind === 'comma') return isListed(at, start + 1)
  if (isClause(at, start) || isCutOrder(at, start)) return true
  if (value.text === 'declare' || (value.text === 'exec' && value.kind === 'word'))
    return isStatement(at, start)
  const isValue = value.kind === 'number' || value.kind === 'text'
  if (!isValue && value.kind !== 'word') return false
  start += 1
  const next = at(start)
  switch (next.kind) {
    case 'semicolon':
      return isStatement(at, start + 1)
    case 'logic':
      return isValue ? isCondition(at, start + 1) : isTautology(at, start + 1)
    case 'arithmetic':
      return isValue && isQuery(at, start + 1)
    case 'comma':
      return isListed(at, start + 1)
    case 'word':
      return isClause(at, start) || isOrder(at, start)
    default:
      return false
  }
}

function isStatement(at: SqlTokens, index: number): boolean {
  const { kind, text } = at(index)
  const next = at(index + 1)
  switch (text) {
    case 'shutdown':
      return next.kind === 'end' || next.kind === 'cut'
    case 'select':
      return isSelected(at, index + 1)
    case 'update':
      return at(index + 2).text === 'set'
    case 'declare':
      return next.text.startsWith('@')
    case 'desc':
      return at(index + 2).kind === 'cut'
    case 'exec':
    case 'execute':
      return kind === 'call' || /^(?:xp_|sp_|master\b|immediate$|@)|_|\./.test(next.text)
    default:
      return isAttackCall(at(index)) || STATEMENTS.get(text)?.has(next.text) === true
  }
}

/** Matches a list of values or of sort keys: `',(select ...)`, `',null) waitfor ...`. */
function isListed(at: SqlTokens, index: number): boolean {
  let end = operandEnd(at, index)
  if (isQuery(at, index)) return true
  while (at(end).kind === 'comma') {
    if (isQuery(at, end + 1)) return true
    end = operandEnd(at, end + 1)
  }
  return isClause(at, end)
}

/** Matches a computation and a closing part: `'-0 --`, `'+'a`. `"*"` alone is an asterisk. */
function isComputed(at: SqlTokens, index: number): boolean {
  const end = operandEnd(at, index)
  return closes(at, end) && (end > index || at(index).text !== '')
}

function isUnion(at: SqlTokens, index: number): boolean {
  const next = at(index + 1).text
  const select = next === 'all' || next === 'distinct' ? index + 2 : index + 1
  return at(select).text === 'select' && isSelected(at, select + 1)
}

/** Matches clauses that follow a condition and that do not occur in prose. */
function isClause(at: SqlTokens, index: number): boolean {
  const next = at(index + 1)
  switch (at(index).text) {
    case 'union':
      return isUnion(at, index)
    case 'having':
    case 'where':
      return isTautology(at, index + 1)
    case 'limit':
    case 'offset':
      return next.kind === 'number' && closes(at, index + 2)
    case 'procedure':
      return next.text === 'analyse'
    case 'into':
      return next.text === 'outfile' || next.text === 'dumpfile'
    case 'waitfor':
      return next.text === 'delay'
    case 'exec':
    case 'execute':
      return isStatement(at, index)
    case 'order':
    case 'group':
      return next.text === 'by' && isListed(at, index + 2)
    default:
      return false
  }
}

/** Matches `order by 3` at the end. After a value, it probes the number of columns. */
function isOrder(at: SqlTokens, index: number): boolean {
  const end = endOfOrder(at, index)
  const { kind } = at(end)
  return end !== index && (kind === 'cut' || (kind === 'end' && at(end - 1).kind === 'number'))
}

function isCutOrder(at: SqlTokens, index: number): boolean {
  const end = endOfOrder(at, index)
  if (end === index) return false
  return at(end).kind === 'cut' || isClause(at, end)
}

/** Returns the index after `order by ...`, or `index` if it does not match there. */
function endOfOrder(at: SqlTokens, index: number): number {
  const { text } = at(index)
  if ((text !== 'order' && text !== 'group') || at(index + 1).text !== 'by') return index
  let end = operandEnd(at, index + 2)
  while (at(end).kind === 'comma') end = operandEnd(at, end + 1)
  return end
}

/** Reports whether a token is a call of a function that attacks use. */
function isAttackCall({ kind, text }: SqlToken): boolean {
  return kind === 'call' && ATTACK_FUNCTIONS.has(text)
}

/** Returns the index after unary operators and words that do not change the result. */
function afterPrefixes(at: SqlTokens, index: number): number {
  let end = index
  while (PREFIXES.has(at(end).text)) end += 1
  return end
}

/** Reports whether a query can select the expression. The words after "select" in prose differ. */
function isSelected(at: SqlTokens, index: number): boolean {
  const { kind, text } = at(index)
  if (kind === 'word' && !LITERALS.has(text)) {
    const next = at(index + 1)
    if (next.text === 'from' || next.text === '||') return true
    return text.startsWith('@') || next.kind === 'comma'
  }
  return text === '*' || isOperand(at(index))
}

/** Reports whether a subquery, or a call of a function that attacks use, starts at an index. */
function isQuery(at: SqlTokens, index: number): boolean {
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
function operandEnd(at: SqlTokens, index: number): number {
  let end = afterPrefixes(at, index)
  if (!isOperand(at(end))) return end
  end += 1
  while (at(end).kind === 'arithmetic' && isOperand(at(end + 1))) end += 2
  return end
}

/** Reports whether the rest of the surrounding statement stays valid after an index. */
function closes(at: SqlTokens, index: number): boolean {
  const { kind, text } = at(index)
  return kind === 'cut' || (kind === 'open_text' && LEFT_OPEN.test(text))
}

/** Reports whether `and` or `or` follows with a comparison, a query or a literal at the end. */
function isCondition(at: SqlTokens, index: number): boolean {
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
function isTautology(at: SqlTokens, index: number): boolean {
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

/** Detects what an injection puts after a value in an SQL statement, and prose rarely does. */
import {
  afterPrefixes,
  closes,
  isAttackCall,
  isCondition,
  isQuery,
  isSelected,
  isTautology,
  operandEnd,
} from './sql-expression.ts'
import type { SqlTokens } from './sql-tokens.ts'

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
  }).map(([word, followers]) => [word, new Set(followers.split(' '))]),
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
  const isLiteral = value.kind === 'number' || value.kind === 'text'
  if (!isLiteral && value.kind !== 'word') return false
  start += 1
  const next = at(start)
  switch (next.kind) {
    case 'semicolon':
      return isStatement(at, start + 1)
    case 'logic':
      return isLiteral ? isCondition(at, start + 1) : isTautology(at, start + 1)
    case 'arithmetic':
      return isLiteral && isQuery(at, start + 1)
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

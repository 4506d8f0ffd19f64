/** The errors of SQLite that the trail expects. Their messages are all that D1 gives. */
import { DatabaseError, type Fault } from '../database.ts'

const MESSAGES: readonly (readonly [Fault, RegExp])[] = [
  ['missing', /no such table|has no column named|no such column/i],
  ['duplicate', /duplicate column name/i],
  ['constraint', /constraint failed/i],
]

/** Returns a {@link DatabaseError} for an error that the trail expects, and otherwise the error itself. */
export function sqliteFault(error: unknown): unknown {
  const message = error instanceof Error ? error.message : ''
  const found = MESSAGES.find(([, pattern]) => pattern.test(message))
  return found === undefined ? error : new DatabaseError(found[0], { cause: error })
}

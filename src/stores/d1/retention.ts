/** The end of the audit trail's life. */

/** Rows a statement: a D1 statement may run 30 s, and others wait for it. */
const ROWS_PER_STATEMENT = 5_000
/** A run ends after a million rows; the next one goes on. */
const MAX_STATEMENTS = 200

/**
 * Deletes events and dead letters from before `beforeMs` (milliseconds since the epoch). Rejects
 * with D1's error; what was deleted until then stays deleted.
 */
export async function deleteBefore(db: D1Database, beforeMs: number): Promise<void> {
  await deleteOldest(db, 'audit_events', 'time_ms', beforeMs)
  await deleteOldest(db, 'dead_letters', 'received_ms', beforeMs)
}

async function deleteOldest(db: D1Database, table: string, column: string, beforeMs: number) {
  const statement = db
    .prepare(
      `DELETE FROM ${table} WHERE rowid IN ` +
        `(SELECT rowid FROM ${table} WHERE ${column} < ? LIMIT ${ROWS_PER_STATEMENT})`,
    )
    .bind(beforeMs)
  for (let run = 0; run < MAX_STATEMENTS; run += 1) {
    const { meta } = await statement.run()
    if (meta.changes === 0) return
  }
}

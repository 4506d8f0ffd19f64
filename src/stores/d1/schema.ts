/** Tables that make themselves, for a database whose migrations nobody has applied. */

/** Whether D1 failed because a table is not there. */
export const isMissingTable = (error: unknown): boolean =>
  error instanceof Error && /no such table/i.test(error.message)

/**
 * Runs `work`; where a table is missing, creates the schema and runs it once more.
 *
 * @param schema SQL statements that do nothing where their object exists, each ended by `;`, with
 *   no `;` inside.
 */
export async function withSchema<Value>(
  db: D1Database,
  schema: string,
  work: () => Promise<Value>,
): Promise<Value> {
  try {
    return await work()
  } catch (error) {
    if (!isMissingTable(error)) throw error
    const statements = schema.split(';').filter((statement) => statement.trim() !== '')
    await db.batch(statements.map((statement) => db.prepare(statement)))
    return work()
  }
}

/** Dead letters of the queue in D1: messages that are no events. */
import { storable } from './audit-row.ts'
import type { AuditDatabase } from './database.ts'
import { within } from './schema.ts'

// One query, because an invocation may make only 50 on the free plan, with one parameter: a JSON
// array of rows. Without WHERE, SQLite parses ON CONFLICT as the ON of a join.
const INSERT =
  'INSERT INTO dead_letters (message_id, received_ms, body) ' +
  'SELECT value ->> 0, CAST(value ->> 1 AS BIGINT), value ->> 2 FROM json_each(?) WHERE true ' +
  'ON CONFLICT DO NOTHING'

export interface DeadLetter {
  readonly id: string
  readonly timestamp: Date
  readonly body: unknown
}

/** Stores messages, all or none. Skips those that exist already. Rejects with D1's error. */
export async function keepDeadLetters(
  db: AuditDatabase,
  messages: readonly DeadLetter[],
): Promise<void> {
  if (messages.length === 0) return
  const rows = messages.map(({ id, timestamp, body }) => [
    id,
    timestamp.getTime(),
    storable(textOf(body)),
  ])
  await within(db.prepare(INSERT).bind(JSON.stringify(rows)).run())
}

function textOf(body: unknown): string {
  if (typeof body === 'string') return body
  try {
    return JSON.stringify(body) ?? String(body)
  } catch {
    return String(body)
  }
}

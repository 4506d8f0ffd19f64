/** Dead letters of the queue in the database: messages that are no events. */
import { storable } from './audit-row.ts'
import type { ConsumerDatabase } from './database.ts'
import { within } from './schema.ts'

export interface DeadLetter {
  readonly id: string
  readonly timestamp: Date
  readonly body: unknown
}

/** Stores messages, all or none. Skips those that exist already. Rejects with the error of the database. */
export async function keepDeadLetters(
  db: ConsumerDatabase,
  messages: readonly DeadLetter[],
): Promise<void> {
  if (messages.length === 0) return
  const rows = messages.map(({ id, timestamp, body }) => [
    id,
    timestamp.getTime(),
    storable(textOf(body)),
  ])
  const statements = db.dialect.insert({
    table: 'dead_letters',
    columns: ['message_id', 'received_ms', 'body'],
    integers: new Set(['received_ms']),
    rows,
    skipsKnown: true,
  })
  await within(db.run(statements))
}

function textOf(body: unknown): string {
  if (typeof body === 'string') return body
  try {
    return JSON.stringify(body) ?? String(body)
  } catch {
    return String(body)
  }
}

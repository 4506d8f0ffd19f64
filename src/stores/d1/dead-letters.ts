/** Messages of the audit queue that are no audit events, kept as they came. */
import { within } from './deadline.ts'
import { insertStatement } from './insert.ts'

/** What is kept of a message. */
export interface DeadLetter {
  /** The queue's id of the message. */
  readonly messageId: string
  readonly receivedMs: number
  readonly body: unknown
}

const INSERT = insertStatement('dead_letters', ['message_id', 'received_ms', 'body'])

/** Keeps letters, all or none; one that is there already is passed over. Rejects with D1's error. */
export async function keepDeadLetters(
  db: D1Database,
  letters: readonly DeadLetter[],
): Promise<void> {
  if (letters.length === 0) return
  const rows = letters.map(({ messageId, receivedMs, body }) => [
    messageId,
    receivedMs,
    textOf(body),
  ])
  await within(db.prepare(INSERT).bind(JSON.stringify(rows)).run())
}

/** Text as it is, JSON where that can be made, else whatever the value says of itself. */
function textOf(body: unknown): string {
  if (typeof body === 'string') return body
  try {
    return JSON.stringify(body) ?? String(body)
  } catch {
    return String(body)
  }
}

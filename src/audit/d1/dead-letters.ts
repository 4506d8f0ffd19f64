import { insertStatement, within } from './schema.ts'

/** The stored fields of a message. */
export interface DeadLetter {
  /** The queue's id of the message. */
  readonly messageId: string
  readonly receivedMs: number
  readonly body: unknown
}

const INSERT = insertStatement('dead_letters', ['message_id', 'received_ms', 'body'])

/** Stores dead letters, all or none. Skips those that exist already. Rejects with D1's error. */
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

/**
 * Returns a string unchanged, another value as JSON, or its string conversion if JSON is not
 * possible.
 */
function textOf(body: unknown): string {
  if (typeof body === 'string') return body
  try {
    return JSON.stringify(body) ?? String(body)
  } catch {
    return String(body)
  }
}

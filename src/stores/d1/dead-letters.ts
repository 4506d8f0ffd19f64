/** Messages of the audit queue that are no audit events, kept as they came. */

/** What is kept of a message. */
export interface DeadLetter {
  /** The queue's id of the message. */
  readonly messageId: string
  readonly receivedMs: number
  readonly body: unknown
}

/** Keeps letters, all or none; one that is there already is passed over. Rejects with D1's error. */
export async function keepDeadLetters(
  db: D1Database,
  letters: readonly DeadLetter[],
): Promise<void> {
  if (letters.length === 0) return
  const insert = db.prepare(
    'INSERT INTO dead_letters (message_id, received_ms, body) VALUES (?, ?, ?) ' +
      'ON CONFLICT (message_id) DO NOTHING',
  )
  await db.batch(
    letters.map(({ messageId, receivedMs, body }) =>
      insert.bind(messageId, receivedMs, textOf(body)),
    ),
  )
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

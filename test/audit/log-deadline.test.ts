import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { auditQuerySchema } from '../../src/audit/log.ts'
import { createAuditLog } from '../../src/audit/sql/audit-events.ts'

const QUERY_TIMEOUT_MS = 5_000

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** Returns a database that never answers a statement. */
function silentDatabase(): D1Database {
  const never = () => new Promise(() => {})
  const statement = { bind: () => statement, all: never, first: never }
  return { prepare: () => statement, batch: never } as unknown as D1Database
}

test('a database that does not answer is an outage after the deadline, and not before', async () => {
  let outcome: unknown
  const query = createAuditLog(silentDatabase())
    .query(auditQuerySchema.parse({}))
    .catch((error: unknown) => {
      outcome = error
    })
  await vi.advanceTimersByTimeAsync(QUERY_TIMEOUT_MS - 1)
  expect(outcome).toBeUndefined()
  await vi.advanceTimersByTimeAsync(1)
  await query
  expect(outcome).toMatchObject({ name: 'Unavailable', dependency: 'audit_log', fault: 'timeout' })
})

import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { auditQuerySchema } from '../../src/audit/log.ts'
import { createAuditLog } from '../../src/audit/sql/audit-events.ts'
import { type AuditStatement, d1Database } from '../../src/audit/sql/d1/database.ts'
import type { TrailDatabase } from '../../src/audit/sql/database.ts'

const QUERY_TIMEOUT_MS = 5_000

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** Returns a database that never answers a statement. */
function silentDatabase(): TrailDatabase {
  const statement: AuditStatement = { bind: () => statement }
  return d1Database({ prepare: () => statement, batch: () => new Promise(() => {}) })
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

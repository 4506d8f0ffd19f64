/** What the log has when audit events cannot be stored. */
import { DatabaseSync } from 'node:sqlite'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { StreamReader } from '../../../src/audit/redis/stream.ts'
import type { AuditConsumer } from '../../../src/runtimes/audit/consumer.ts'
import { consumeAuditStream } from '../../../src/runtimes/node/audit/consumer.ts'

/** Returns the error of a real database that has no room for another page. */
function fullDatabase(): unknown {
  const database = new DatabaseSync(':memory:')
  onTestFinished(() => database.close())
  try {
    database.exec('PRAGMA max_page_count = 2; CREATE TABLE a (b); CREATE TABLE c (d)')
  } catch (error) {
    return error
  }
  throw new Error('the database has room')
}

test.each([
  ['a full disk', fullDatabase, 'database or disk is full'],
  [
    'an error of the system',
    () => Object.assign(new Error('/secret/path'), { code: 'EROFS' }),
    'Error EROFS',
  ],
  ['another error', () => new TypeError('a secret'), 'TypeError'],
])('the log names %s, and no data', async (_, errorOf, reason) => {
  const log = vi.spyOn(console, 'error').mockImplementation(() => {})
  onTestFinished(() => log.mockRestore())
  const error = errorOf()
  const stop = new AbortController()
  const stream = {
    async read() {
      stop.abort()
      throw error
    },
  }
  await consumeAuditStream(
    stream as unknown as StreamReader,
    {} as unknown as AuditConsumer,
    stop.signal,
  )
  expect(log.mock.calls[0]).toEqual([`audit: the consumer failed (${reason})`])
})

/** A lock between processes of one machine: one of SQLite, because Node has no other that ends with its process. */
import { DatabaseSync } from 'node:sqlite'

/**
 * Locks a file, which is created if necessary and contains nothing. Returns a function that releases
 * the lock. Blocks the thread for at most `timeoutMs`; throws if another process has the lock then.
 */
export function lockFile(path: string, timeoutMs: number): () => void {
  const lock = new DatabaseSync(path, { timeout: timeoutMs })
  try {
    lock.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    lock.close()
    throw error
  }
  return () => lock.close()
}

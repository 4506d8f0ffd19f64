/** Waits for other processes that write a file of SQLite. */

/** How long a statement waits for a transaction of another process. */
export const BUSY_TIMEOUT_MS = 5_000
const PAUSE_MS = 10
/** SQLITE_BUSY. Its extended codes are in the higher bits. */
const [BUSY, PRIMARY_CODE] = [5, 0xff]

/** Reports whether another process has a lock that the statement needs. */
export function isBusy(error: unknown): boolean {
  const { errcode } = error as { readonly errcode?: number }
  return errcode !== undefined && (errcode & PRIMARY_CODE) === BUSY
}

/**
 * Repeats the work while another process writes, and blocks the thread: SQLite itself does not wait when it
 * changes the journal mode. Throws its error after the timeout.
 */
export function whenFree(work: () => void): void {
  const pause = new Int32Array(new SharedArrayBuffer(4))
  const endMs = performance.now() + BUSY_TIMEOUT_MS
  for (;;) {
    try {
      work()
      return
    } catch (error) {
      if (!isBusy(error) || performance.now() >= endMs) throw error
      Atomics.wait(pause, 0, 0, PAUSE_MS)
    }
  }
}

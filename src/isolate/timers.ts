/** Sleeps, and timeouts for operations that cannot be cancelled. */

/** The deadline passed. The operation continues, but its outcome is unknown and ignored. */
export class DeadlineExceeded extends Error {
  override readonly name = 'DeadlineExceeded'
}

export const sleep = (ms: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, ms))

/**
 * Settles like `work`, or rejects with `DeadlineExceeded` after `ms` milliseconds. For bindings
 * that do not accept an `AbortSignal` (queues, the Cache API). A late rejection of `work` is
 * ignored.
 */
export async function withDeadline<Value>(work: Promise<Value>, ms: number): Promise<Value> {
  let timer!: ReturnType<typeof setTimeout>
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new DeadlineExceeded(`${ms} ms`)), ms)
  })
  try {
    return await Promise.race([work, deadline])
  } finally {
    clearTimeout(timer)
  }
}

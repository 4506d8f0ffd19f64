/** Waiting: for a while, or for something that cannot be cancelled, but not for ever. */

/** The deadline passed. The work goes on; its outcome is unknown, and nobody waits for it. */
export class DeadlineExceeded extends Error {
  override readonly name = 'DeadlineExceeded'
}

/** Resolves after `ms` milliseconds. */
export const sleep = (ms: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, ms))

/**
 * Settles as `work` does, or rejects with `DeadlineExceeded` after `ms` milliseconds. For bindings
 * that take no `AbortSignal` (queues, the Cache API). A late rejection of `work` is swallowed.
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

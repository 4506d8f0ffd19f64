/** A cap on how long something that cannot be cancelled is waited for. */

/** The deadline passed. The work goes on; its outcome is unknown, and nobody waits for it. */
export class DeadlineExceeded extends Error {
  override readonly name = 'DeadlineExceeded'
}

/**
 * Settles as `work` does, or rejects with {@link DeadlineExceeded} after `ms`. For bindings that
 * take no `AbortSignal` (queues). A late rejection of `work` is swallowed.
 */
export async function withDeadline<Value>(work: Promise<Value>, ms: number): Promise<Value> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const deadline = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new DeadlineExceeded(`${ms} ms`)), ms)
  })
  try {
    return await Promise.race([work, deadline])
  } finally {
    clearTimeout(timer)
  }
}

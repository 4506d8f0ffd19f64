/** Shuts a process down in order, exactly once. */

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
const PARENT_POLL_MS = 100

export interface Shutdown {
  /** Aborted when the shutdown begins. */
  readonly signal: AbortSignal
  /** Registers a function that closes a resource. They run in reverse order of registration. */
  defer(close: () => Promise<void>): void
  /** Closes everything and ends the process with `code`. Later calls wait for the first one. */
  exit(code: number): Promise<never>
}

/**
 * Handles the process's signals: each begins a shutdown with exit code `code`. Use 0 for a process
 * that runs until it is stopped, and 1 for one that is then incomplete.
 */
export function createShutdown(code: 0 | 1 = 0): Shutdown {
  const controller = new AbortController()
  const closers: (() => Promise<void>)[] = []
  let exiting: Promise<never> | undefined

  async function closeAndExit(ending: number): Promise<never> {
    controller.abort()
    let failed = false
    for (let close = closers.pop(); close !== undefined; close = closers.pop()) {
      await close().catch((error: Error) => {
        failed = true
        console.error(`portcullis: ${error.message}`)
      })
    }
    process.exit(failed ? 1 : ending)
  }

  function exit(ending: number): Promise<never> {
    exiting ??= closeAndExit(ending)
    return exiting
  }

  for (const name of SIGNALS) process.on(name, () => void exit(code))
  // npm forwards only SIGINT and SIGTERM. After other signals npm ends, but this process continues.
  if (process.env.npm_lifecycle_event !== undefined) {
    const parent = process.ppid
    setInterval(() => process.ppid !== parent && void exit(code), PARENT_POLL_MS).unref()
  }
  return { signal: controller.signal, defer: (close) => void closers.push(close), exit }
}

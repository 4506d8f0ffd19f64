/** Ends a process in order, once, whatever the reason. */

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
const PARENT_POLL_MS = 100

export interface Shutdown {
  /** Aborted when the process is asked to end. */
  readonly signal: AbortSignal
  /** Registers what must be closed. What was registered last is closed first. */
  defer(close: () => Promise<void>): void
  /** Closes everything, then ends the process with `code`. Later calls wait for the first. */
  exit(code: number): Promise<never>
}

/**
 * Takes over the process's signals; each of them is a wish to end, with `code`: 0 for what runs until it
 * is asked to end, 1 for what has then not done what it should.
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
  // npm passes on SIGINT and SIGTERM only, so after others it is gone and this process is not.
  if (process.env.npm_lifecycle_event !== undefined) {
    const parent = process.ppid
    setInterval(() => process.ppid !== parent && void exit(code), PARENT_POLL_MS).unref()
  }
  return { signal: controller.signal, defer: (close) => void closers.push(close), exit }
}

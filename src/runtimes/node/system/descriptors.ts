/** File descriptors of the process: each connection and each open file uses one. */
import { closeSync, openSync } from 'node:fs'
import { devNull } from 'node:os'

/** Node accepts and closes connections without a sign when it has no descriptor, so only a trial shows it. */
const TRIAL_MS = 5_000
/** The limit of the process, and the one of the system. */
const SHORTAGES: ReadonlySet<string | undefined> = new Set(['EMFILE', 'ENFILE'])

/** Reports whether an error of the system says that no descriptor is free. */
export const isShortage = (error: unknown): boolean =>
  SHORTAGES.has((error as NodeJS.ErrnoException | undefined)?.code)

/** Logs when no descriptor is free, and when one is again. Looks every five seconds. Returns the function that ends this. */
export function watchDescriptors(): () => void {
  let isShort = false
  function look(): void {
    const code = shortage()
    if (isShort === (code !== undefined)) return
    isShort = !isShort
    if (isShort)
      console.error(
        `system: no file descriptor is free (${code}); new connections are closed or wait, and requests that need ` +
          'one get 503. Raise the limit of open files (ulimit -n; for ENFILE, fs.file-max)',
      )
    else console.warn('system: file descriptors are free again')
  }
  const timer = setInterval(look, TRIAL_MS).unref()
  return () => clearInterval(timer)
}

function shortage(): string | undefined {
  try {
    closeSync(openSync(devNull, 'r'))
  } catch (error) {
    if (isShortage(error)) return (error as NodeJS.ErrnoException).code
  }
  return undefined
}

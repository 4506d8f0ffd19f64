/** Files that only the user of the process may read. */
import { closeSync, openSync } from 'node:fs'

/** The mode of a file with personal data. */
export const PRIVATE_FILE = 0o600

/**
 * Creates a file unless it exists. SQLite would create it with the usual mode. It gives the mode of the
 * file to its journal.
 */
export function createPrivately(path: string): void {
  try {
    closeSync(openSync(path, 'wx', PRIVATE_FILE))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

/** Files that only the user of the process may read. */
import { chmodSync, closeSync, existsSync, openSync, realpathSync, statSync } from 'node:fs'

/** The mode of a file with personal data. */
export const PRIVATE_FILE = 0o600

/** The bits of the group and of all others. */
const OF_OTHERS = 0o077
/** Files that SQLite keeps beside a database. They contain its rows. */
const JOURNALS = ['-journal', '-shm', '-wal']

/**
 * Creates a file unless it exists. SQLite would create it with the usual mode. It gives the mode of the
 * file to its journal. If the file or its journal exists and others can access it, removes that access
 * if this user owns the file, and logs a warning in each case.
 */
export function createPrivately(path: string): void {
  try {
    closeSync(openSync(path, 'wx', PRIVATE_FILE))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  if (!existsSync(path)) return
  // SQLite follows a symbolic link, and its journals are beside the file itself.
  const file = realpathSync(path)
  for (const suffix of ['', ...JOURNALS]) withdrawAccess(file + suffix)
}

/** Does not open the file: closing it would release the locks that SQLite has on it in this process. */
function withdrawAccess(path: string): void {
  const stats = statSync(path, { throwIfNoEntry: false })
  // Windows has no such modes.
  if (process.getuid === undefined || !stats?.isFile() || (stats.mode & OF_OTHERS) === 0) return
  const mode = (stats.mode & 0o777).toString(8)
  const manual = `Its owner must run: chmod 600 ${path}`
  if (stats.uid !== process.getuid()) {
    warn(`${path} has personal data, and other users can access it (mode ${mode}). ${manual}`)
    return
  }
  try {
    chmodSync(path, PRIVATE_FILE)
    warn(`${path} had the mode ${mode}, so other users could access personal data. It now has 600.`)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    warn(`${path} has the mode ${mode}, and changing it to 600 failed (${code}). ${manual}`)
  }
}

const warn = (text: string): void => console.warn(`audit: ${text}`)

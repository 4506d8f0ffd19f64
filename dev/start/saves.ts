/** Detects saved source files, in the checkout or next to a policy elsewhere. */
import { readdirSync, watch } from 'node:fs'
import { join } from 'node:path'

const SOURCE = /\.([cm]?[jt]s|json|fga)$/
/** Folders without source files of the user. */
const FOREIGN = /^(\.|node_modules$|dist$)/
/** Enough for any checkout. In a home folder, covers the folders next to the policy. */
const MAX_FOLDERS = 500
/** Waiting time after a save, because an editor saves in several steps. */
const SETTLING_MS = 200

export interface Saves {
  /** Returns the number of saves so far. */
  count(): number
  /** Resolves once there are more than `seen` saves, and the editor had time to finish. */
  after(seen: number): Promise<void>
}

/**
 * Watches `roots` and the folders below them until `signal` is aborted. Does NOT watch folders that
 * are created later, hidden folders, or `node_modules`. `onSave` receives the name of each saved
 * file.
 */
export function watchSaves(
  roots: readonly string[],
  signal: AbortSignal,
  onSave: (name: string) => void,
): Saves {
  let count = 0
  let waiting: (() => void)[] = []
  function saved(name: string | null) {
    if (name === null || !SOURCE.test(name)) return
    count += 1
    onSave(name)
    for (const resolve of waiting.splice(0)) resolve()
  }
  for (const folder of new Set(roots.flatMap(foldersBelow))) {
    try {
      watch(folder, { signal }, (_, name) => saved(name)).on('error', ignore)
    } catch {
      // Ignored for the same reasons as below.
    }
  }
  signal.addEventListener('abort', () => {
    waiting = []
  })
  return {
    count: () => count,
    async after(seen) {
      if (count <= seen) await new Promise<void>((resolve) => waiting.push(resolve))
      await new Promise((resolve) => setTimeout(resolve, SETTLING_MS))
    },
  }
}

/** Ignores a folder that was removed, or that exceeds the system's limit of watches. */
const ignore = () => {}

/** Returns the folder and all folders in it, the nearest first. */
function foldersBelow(root: string): readonly string[] {
  const folders = [root]
  for (const folder of folders) {
    for (const entry of entriesOf(folder)) {
      if (folders.length === MAX_FOLDERS) return folders
      if (entry.isDirectory() && !FOREIGN.test(entry.name)) folders.push(join(folder, entry.name))
    }
  }
  return folders
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return []
  }
}

/** Hears when somebody saves a source: of the checkout, or beside a policy elsewhere. */
import { readdirSync, watch } from 'node:fs'
import { join } from 'node:path'

const SOURCE = /\.([cm]?[jt]s|json|fga)$/
/** Where others keep what is theirs. */
const FOREIGN = /^(\.|node_modules$|dist$)/
/** Enough for any checkout; in a home folder those that are near the policy. */
const MAX_FOLDERS = 500
/** An editor saves in several steps. */
const SETTLING_MS = 200

export interface Saves {
  /** How many were heard. */
  count(): number
  /** Resolves once there are more than `seen`, and their editor has had its time. */
  after(seen: number): Promise<void>
}

/**
 * Begins to listen in `roots` and below them, until `signal` is aborted. Folders that are made later
 * are not heard of, nor is what lies in hidden ones and in `node_modules`. `onSave` is told the name of
 * each file.
 */
export function watchSaves(
  roots: readonly string[],
  signal: AbortSignal,
  onSave: (name: string) => void,
): Saves {
  let count = 0
  let waiting: (() => void)[] = []
  function heard(name: string | null) {
    if (name === null || !SOURCE.test(name)) return
    count += 1
    onSave(name)
    for (const tell of waiting.splice(0)) tell()
  }
  for (const folder of new Set(roots.flatMap(foldersBelow))) {
    try {
      watch(folder, { signal }, (_, name) => heard(name)).on('error', ignore)
    } catch {
      // As below.
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

/** A folder that is gone, or one more than this system watches, is no reason to end. */
const ignore = () => {}

/** The folder and those in it, the nearest first. */
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

/** Files with secrets: written whole, and readable only by their owner. */
import { randomBytes } from 'node:crypto'
import { linkSync, renameSync, rmSync, writeFileSync } from 'node:fs'

const OWNER_ONLY = 0o600

/** Writes a file atomically, readable only by its owner. */
export function replace(path: string, text: string): void {
  const draft = draftOf(path, text)
  renameSync(draft, path)
}

/** Writes a file like {@link replace}, but keeps a file that another process created first. */
export function create(path: string, text: string): void {
  const draft = draftOf(path, text)
  try {
    linkSync(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    rmSync(draft)
  }
}

function draftOf(path: string, text: string): string {
  const draft = `${path}.${randomBytes(6).toString('hex')}`
  writeFileSync(draft, text, { mode: OWNER_ONLY, flag: 'wx' })
  return draft
}

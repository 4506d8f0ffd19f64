/** The bucket of the export as a directory of the file system. */
import { createHash, randomUUID } from 'node:crypto'
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve, sep } from 'node:path'
import type { ExportBucket } from '../../../audit/r2/chain-export.ts'
import { lockFile } from '../system/file-lock.ts'
import { PRIVATE_FILE } from '../system/private-file.ts'

/** The file whose lock a writer has. It contains nothing. */
const LOCK = '.lock'
/** A writer needs milliseconds. */
const LOCK_TIMEOUT_MS = 10_000

/**
 * Creates the bucket; its directory is created if necessary. Names are paths below it. An object is
 * written to a temporary file first, so a reader never finds a part of it. The etag is the SHA-256 of
 * the content. Several processes of one machine may write at once. Blocks the thread.
 *
 * Throws a `RangeError` for a name that leads out of the directory, and otherwise the error of the
 * file system.
 */
export function directoryBucket(directory: string): ExportBucket {
  const root = resolve(directory)
  mkdirSync(root, { recursive: true })

  function fileOf(name: string): string {
    const file = resolve(root, name)
    if (!file.startsWith(root + sep)) throw new RangeError(`invalid name of an object: ${name}`)
    return file
  }

  function read(name: string): { readonly text: string; readonly etag: string } | null {
    try {
      const text = readFileSync(fileOf(name), 'utf8')
      return { text, etag: createHash('sha256').update(text).digest('hex') }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
      throw error
    }
  }

  return {
    head: async (name) => read(name),
    async get(name) {
      const object = read(name)
      return object && { etag: object.etag, text: async () => object.text }
    },
    async put(name, bytes, { onlyIf }) {
      const file = fileOf(name)
      return exclusively(join(root, LOCK), () => {
        const current = read(name)
        const expected = 'etagMatches' in onlyIf ? onlyIf.etagMatches : undefined
        if (current?.etag !== expected) return null
        writeDurably(file, bytes)
        return {}
      })
    },
  }
}

/** Runs `work` while no other process does. */
function exclusively<Value>(path: string, work: () => Value): Value {
  const release = lockFile(path, LOCK_TIMEOUT_MS)
  try {
    return work()
  } finally {
    release()
  }
}

/** Replaces a file so that it has either content after a failure of the machine, and no other. */
function writeDurably(file: string, bytes: Uint8Array): void {
  const folder = dirname(file)
  const temporary = join(folder, `.${randomUUID()}`)
  mkdirSync(folder, { recursive: true })
  try {
    writeFileSync(temporary, bytes, { flush: true, mode: PRIVATE_FILE })
    renameSync(temporary, file)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  }
  const descriptor = openSync(folder, 'r')
  fsyncSync(descriptor)
  closeSync(descriptor)
}

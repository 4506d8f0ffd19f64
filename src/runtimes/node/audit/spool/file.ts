/** The file of the spool: audit events that wait on the disk until Redis works, in SQLite. */
import { mkdirSync, statfsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { utf8Length } from '../../../../audit/truncate.ts'
import { lockFile } from '../../system/file-lock.ts'
import { createPrivately } from '../../system/private-file.ts'
import { BUSY_TIMEOUT_MS, isBusy, whenFree } from '../../system/sqlite-busy.ts'

const EVENTS = 'events.db'
/** The file whose lock the sending process has. */
const LOCK = 'sender.lock'
const PAGE_BYTES = 4_096
const SHRINK_PAGES = 1_000
/** A journal that is larger is cut when it is reused. */
const MAX_JOURNAL_BYTES = 4_194_304
/**
 * Removing events needs space as well: for the journal, and for the part of the file that it has not
 * reached yet.
 */
const RESERVED_BYTES = 16 * 1_048_576
/** Only the user of the process reads events. */
const FOLDER_MODE = 0o700

/**
 * A commit is not synced: several processes write, and each would wait for the disk of the others.
 * `auto_vacuum` must be set before the first table exists.
 */
const SETTINGS = `
PRAGMA page_size = ${PAGE_BYTES};
PRAGMA auto_vacuum = INCREMENTAL;
PRAGMA journal_mode = WAL;
PRAGMA journal_size_limit = ${MAX_JOURNAL_BYTES};
PRAGMA synchronous = NORMAL;
-- Removed events leave no text in free pages.
PRAGMA secure_delete = ON;
CREATE TABLE IF NOT EXISTS events (
  -- A number is never used again, so that a late call removes no other event.
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  stored_ms INTEGER NOT NULL,
  event TEXT NOT NULL
) STRICT;
`

/**
 * A file that several processes of one machine may use at once. Each call blocks the thread, and throws
 * the error of SQLite; then it has no effect. What a call has stored survives the end of the process
 * and, after `sync`, of the machine.
 */
export type SpoolFile = ReturnType<typeof openSpoolFile>

/** Opens or creates the file in `directory`, which is created if necessary. Throws the error of the system. */
export function openSpoolFile(directory: string, maxBytes: number) {
  const folder = resolve(directory)
  mkdirSync(folder, { recursive: true, mode: FOLDER_MODE })
  for (const name of [EVENTS, LOCK]) createPrivately(join(folder, name))
  const db = new DatabaseSync(join(folder, EVENTS), { timeout: BUSY_TIMEOUT_MS })
  try {
    whenFree(() => db.exec(SETTINGS))
    db.exec(`PRAGMA max_page_count = ${Math.floor(maxBytes / PAGE_BYTES)}`)
  } catch (error) {
    db.close()
    throw error
  }
  const insert = db.prepare('INSERT INTO events (stored_ms, event) VALUES (?, ?)')
  const select = db.prepare('SELECT seq, event FROM events ORDER BY seq LIMIT ?')
  const removeUpTo = db.prepare('DELETE FROM events WHERE seq <= ?')
  const removeOld = db.prepare('DELETE FROM events WHERE stored_ms < ?')
  const freePages = () => Number(db.prepare('PRAGMA freelist_count').get()?.freelist_count)

  function inTransaction<Value>(work: () => Value): Value {
    db.exec('BEGIN IMMEDIATE')
    try {
      const value = work()
      db.exec('COMMIT')
      return value
    } catch (error) {
      // SQLite itself ends the transaction after some errors, such as a full disk.
      if (db.isTransaction) db.exec('ROLLBACK')
      throw error
    }
  }

  return {
    /**
     * Stores all events or none. Throws if the file would exceed its bound, or if the disk has less than
     * 16 MiB of free space.
     */
    append(events: readonly string[], nowMs: number): void {
      requireSpace(folder)
      inTransaction(() => {
        for (const event of events) insert.run(nowMs, event)
      })
    },
    /** Writes what is stored to the disk. */
    sync: (): void => db.exec('PRAGMA wal_checkpoint(PASSIVE)'),
    /** Returns the oldest events: at most `maxEvents`, and at most `maxBytes` unless the first is larger. */
    read(maxEvents: number, maxBytesRead: number) {
      const events: string[] = []
      let [bytes, lastSeq] = [0, 0]
      for (const row of select.iterate(maxEvents)) {
        const event = String(row.event)
        bytes += utf8Length(event)
        if (bytes > maxBytesRead && events.length > 0) break
        events.push(event)
        lastSeq = Number(row.seq)
      }
      return {
        events,
        /** Names the last event for `remove`. */
        lastSeq,
      }
    },
    /** Removes the events up to `lastSeq`. */
    remove: (lastSeq: number): void => void removeUpTo.run(lastSeq),
    /**
     * Removes the events that were stored before `beforeMs`, and stores the event that `reportOf` creates
     * from their number. Returns the number.
     */
    expire: (beforeMs: number, reportOf: (count: number) => string): number =>
      inTransaction(() => {
        const count = Number(removeOld.run(beforeMs).changes)
        if (count > 0) insert.run(beforeMs, reportOf(count))
        return count
      }),
    /** Returns the space of removed events to the file system. */
    shrink(): void {
      // In steps, because a transaction writes each page that it frees to the journal.
      for (let pages = freePages(); pages > 0; pages -= SHRINK_PAGES)
        db.exec(`PRAGMA incremental_vacuum(${SHRINK_PAGES}); PRAGMA wal_checkpoint(TRUNCATE)`)
      // The log has the removed events too, if they have freed no page.
      db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    },
    /** Returns a function that releases the lock of the sender, or undefined if another process has it. */
    lock(): (() => void) | undefined {
      try {
        return lockFile(join(folder, LOCK), 0)
      } catch (error) {
        if (isBusy(error)) return undefined
        throw error
      }
    },
    close: (): void => db.close(),
  }
}

function requireSpace(folder: string): void {
  const { bavail, bsize } = statfsSync(folder)
  if (bavail * bsize < RESERVED_BYTES) throw new Error('the disk is full')
}

/**
 * The thread of the opponent by hand that moves events from the stream to SQLite, in batches. An event
 * leaves the stream after its transaction is on the disk. One that comes again is stored once, by its id.
 */
import { DatabaseSync } from 'node:sqlite'
import { Redis } from 'ioredis'
import { REDIS_URL, STREAM } from './environment.ts'

interface Event {
  readonly timeMs: number
  readonly subject: string
  readonly method: string
  readonly path: string
  readonly status: number
}
type Entry = readonly [id: string, fields: readonly string[]]

const [GROUP, CONSUMER] = ['store', 'only']
const PAGE = 500
/** Lets a page fill. A smaller page costs as many transactions. */
const PAUSE_MS = 250

const database = new DatabaseSync(process.env.AUDIT_FILE ?? '')
database.exec(`
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  CREATE TABLE IF NOT EXISTS events (
    id TEXT PRIMARY KEY, time_ms INTEGER, subject TEXT, method TEXT, path TEXT, status INTEGER, event TEXT
  ) WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS by_subject ON events (subject, time_ms);
`)
const insert = database.prepare('INSERT OR IGNORE INTO events VALUES (?, ?, ?, ?, ?, ?, ?)')
const redis = new Redis(REDIS_URL)

function store(entries: readonly Entry[]): void {
  database.exec('BEGIN IMMEDIATE')
  for (const [id, [, event = '{}']] of entries) {
    const { timeMs, subject, method, path, status } = JSON.parse(event) as Event
    insert.run(id, timeMs, subject, method, path, status, event)
  }
  database.exec('COMMIT')
}

async function page(from: '0' | '>'): Promise<readonly Entry[]> {
  const read = ['COUNT', PAGE, 'STREAMS', STREAM, from] as const
  const [reply] = (await redis.xreadgroup('GROUP', GROUP, CONSUMER, ...read)) ?? []
  return (reply as readonly [stream: string, entries: readonly Entry[]] | undefined)?.[1] ?? []
}

await redis.xgroup('CREATE', STREAM, GROUP, '0', 'MKSTREAM').catch(() => 'exists')
// First what a process that was killed has left.
for (let from: '0' | '>' = '0'; ; ) {
  const entries = await page(from)
  if (entries.length > 0) {
    store(entries)
    const ids = entries.map(([id]) => id)
    await redis
      .pipeline()
      .xack(STREAM, GROUP, ...ids)
      .xdel(STREAM, ...ids)
      .exec()
  } else from = '>'
  if (entries.length < PAGE) await new Promise((done) => setTimeout(done, PAUSE_MS))
}

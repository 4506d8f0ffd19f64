/** Reads the audit events that arrived in the local databases: D1 of Workers, SQLite of Node. */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { inflateRawSync } from 'node:zlib'
import { eventOfLine } from '../../src/audit/blocks/line.ts'
import { ROOT } from './process.ts'

export interface StoredEvent {
  readonly id: string
  readonly request_id: string
  readonly decision: string
  readonly reason: string
  readonly status: number
  readonly route: string | null
  readonly subject: string | null
}

/** Returns the events of these requests, from the databases of all gateways of this checkout. */
export function storedEvents(requestIds: ReadonlySet<string>): StoredEvent[] {
  const found: StoredEvent[] = []
  for (const file of databaseFiles()) {
    const database = new DatabaseSync(file, { readOnly: true })
    try {
      const blocks = database.prepare('SELECT events FROM audit_blocks').all()
      const events = blocks.flatMap(({ events }) => eventsOf(events as Uint8Array))
      found.push(...events.filter(({ request_id }) => requestIds.has(request_id)))
    } catch (error) {
      if (!/no such table/.test(String(error))) throw error
    } finally {
      database.close()
    }
  }
  return found
}

function eventsOf(block: Uint8Array): StoredEvent[] {
  const events = inflateRawSync(block).toString().split('\n').map(eventOfLine)
  return events.map(({ requestId, actor, ...event }) => ({
    ...event,
    request_id: requestId,
    subject: actor.subject,
  }))
}

function databaseFiles(): string[] {
  const folder = join(ROOT, '.wrangler')
  return readdirSync(folder)
    .filter((name) => name === 'state' || name.startsWith('state-'))
    .flatMap((state) => [...ofWorkers(join(folder, state)), ...ofNode(join(folder, state))])
}

function ofNode(state: string): string[] {
  const file = join(state, 'audit.db')
  return existsSync(file) ? [file] : []
}

function ofWorkers(state: string): string[] {
  const databases = join(state, 'v3/d1/miniflare-D1DatabaseObject')
  try {
    return readdirSync(databases)
      .filter((name) => name.endsWith('.sqlite') && name !== 'metadata.sqlite')
      .map((name) => join(databases, name))
  } catch {
    return []
  }
}

/** Reads the audit events of the soak's gateways from the local D1. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { ROOT } from '../../dev/start/settings.ts'

export interface AuditRow {
  readonly request_id: string
  readonly status: number
  readonly reason: string
  /** Number of lost events, in an `audit_lost` event. */
  readonly lost: number | null
}

/** Returns the directory of a gateway's databases, if the gateway does not run alone. */
const stateOf = (port: number): string =>
  join(ROOT, '.wrangler', `state-${port}`, 'v3', 'd1', 'miniflare-D1DatabaseObject')

/** Returns all events of the gateway on this port. */
export function auditRows(port: number): readonly AuditRow[] {
  return ask(port, 'SELECT request_id, status, reason, lost FROM audit_events') as AuditRow[]
}

/** Returns the number of events. */
export function auditCount(port: number): number {
  const rows = ask(port, 'SELECT count(*) AS count FROM audit_events') as { count: number }[]
  return rows.reduce((sum, { count }) => sum + count, 0)
}

function ask(port: number, sql: string): unknown[] {
  return filesOf(port).flatMap((file) => {
    const database = new DatabaseSync(file, { readOnly: true })
    try {
      return database.prepare(sql).all()
    } catch (error) {
      if (/no such table/.test(String(error))) return []
      throw error
    } finally {
      database.close()
    }
  })
}

function filesOf(port: number): readonly string[] {
  try {
    return readdirSync(stateOf(port))
      .filter((name) => name.endsWith('.sqlite') && name !== 'metadata.sqlite')
      .map((name) => join(stateOf(port), name))
  } catch {
    return []
  }
}

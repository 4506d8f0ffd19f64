/** Reads the audit events of the gateways from the local D1 or SQLite, and compares them with the responses. */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { inflateRawSync } from 'node:zlib'
import { ROOT } from '../../dev/start/settings.ts'
import { eventOfLine } from '../../src/audit/blocks/line.ts'
import type { AuditEvent } from '../../src/audit/event.ts'
import type { Answered } from '../chaos/ledger.ts'

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

/** The file of the gateways on Node, by the port of the first. */
export const auditFileOnNode = (port: number): string =>
  join(ROOT, '.wrangler', `soak-${port}`, 'audit.db')

/** When a request ended in its gateway, in milliseconds since the epoch, and how long its stages were. */
export interface AuditTimes {
  readonly endMs: number
  readonly durationsMs: Readonly<Record<string, number>>
}

export const auditRows = (port: number): readonly AuditRow[] => eventsOf(port, rowOf)

/** Returns the times of requests by their ids. */
export const auditTimes = (port: number, ids: ReadonlySet<string>): Map<string, AuditTimes> =>
  new Map(
    eventsOf(port, ({ requestId, time, durationsMs }) =>
      ids.has(requestId) ? [[requestId, { endMs: Date.parse(time), durationsMs }] as const] : [],
    ).flat(),
  )

function eventsOf<Item>(port: number, of: (event: AuditEvent) => Item): readonly Item[] {
  const blocks = query(port, 'SELECT events FROM audit_blocks') as { events: Uint8Array }[]
  return blocks.flatMap(({ events }) => {
    const lines = inflateRawSync(events).toString().split('\n')
    return lines.map((line) => of(eventOfLine(line)))
  })
}

export function auditCount(port: number): number {
  // The number of the last event. The soak deletes none.
  const heads = query(port, 'SELECT seq FROM audit_heads') as { seq: number }[]
  return heads.reduce((sum, { seq }) => sum + seq, 0)
}

function rowOf({ requestId, status, reason, lost }: AuditEvent): AuditRow {
  return { request_id: requestId, status, reason, lost: lost ?? null }
}

function query(port: number, sql: string): unknown[] {
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
  if (existsSync(auditFileOnNode(port))) return [auditFileOnNode(port)]
  try {
    return readdirSync(stateOf(port))
      .filter((name) => name.endsWith('.sqlite') && name !== 'metadata.sqlite')
      .map((name) => join(stateOf(port), name))
  } catch {
    return []
  }
}

/**
 * Events younger than this may be lost when their gateway is killed. They wait in a batch (50 ms),
 * then in the local queue, which is memory of the same process and delivers after a second.
 */
const IN_MEMORY_MS = 5_000

/** Responses that were in a socket at that moment are read a little later. */
const ON_THE_WAY_MS = 500

/** The time at which a gateway was killed, in milliseconds since the epoch. */
export interface Death {
  readonly gateway: number
  readonly timeMs: number
}

export type AuditAccount = ReturnType<typeof accountFor>

const SHED_CODE = 'overloaded'
const MAX_EXAMPLES = 20

export function accountFor(
  answered: readonly Answered[],
  rows: readonly AuditRow[],
  deaths: readonly Death[],
) {
  const byRequest = new Map<string, AuditRow[]>()
  let declared = 0
  for (const row of rows) {
    declared += row.lost ?? 0
    const known = byRequest.get(row.request_id)
    if (known === undefined) byRequest.set(row.request_id, [row])
    else known.push(row)
  }
  let [matched, doubled, different, shed, diedWithGateway] = [0, 0, 0, 0, 0]
  const missing: string[] = []
  for (const request of answered) {
    const [event, ...more] = byRequest.get(request.requestId) ?? []
    if (event === undefined) {
      if (request.code === SHED_CODE) shed++
      else if (deaths.some((death) => tookAlong(death, request))) diedWithGateway++
      else
        missing.push(
          `${new Date(request.answeredMs).toISOString()} ${request.status} ${request.requestId}`,
        )
    } else if (more.length > 0) doubled++
    else if (event.status !== request.status) different++
    else matched++
  }
  // `audit_lost` also counts shed requests. They must not explain other missing events.
  const declaredLost = Math.min(Math.max(0, declared - shed), missing.length)
  return {
    answered: answered.length,
    events: rows.length,
    /** Requests with exactly one event of the same status. */
    matched,
    doubled,
    /** Events with a different status than the response. */
    different,
    /** Responses of a gateway that sheds load: these have no event each. */
    shed,
    /** Requests without an event that a gateway answered in the last seconds before it was killed. */
    diedWithGateway,
    /** Requests without an event that `audit_lost` reported as lost. */
    declaredLost,
    /** Requests without an event and without an explanation. */
    lost: missing.length - declaredLost,
    lostExamples: missing.slice(0, MAX_EXAMPLES),
  }
}

function tookAlong({ gateway, timeMs }: Death, request: Answered): boolean {
  const ageMs = timeMs - request.answeredMs
  return request.gateway === gateway && ageMs >= -ON_THE_WAY_MS && ageMs <= IN_MEMORY_MS
}

/** Adds to each example the reason from the event of its request. */
export function withReasons(examples: readonly string[], rows: readonly AuditRow[]): string[] {
  return examples.map((text) => {
    const [, requestId] = /\(([\w-]{36})\)/.exec(text) ?? []
    const event = rows.find(({ request_id }) => request_id === requestId)
    return event === undefined ? text : `${text} ${event.reason}`
  })
}

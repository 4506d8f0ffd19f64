/**
 * Measures summaries and pages over many events: `node test/audit/measure-summary.ts [events] [SQLite|PostgreSQL]`. Prints the time of the
 * calls that a page of the console makes, on SQLite and PostgreSQL, and what an event costs when it is stored.
 */
import { v7 } from 'uuid'
import { createCheckpointSealer } from '../../src/audit/chain.ts'
import { insertAuditEvents } from '../../src/audit/sql/audit-chain.ts'
import { createAuditLog } from '../../src/audit/sql/audit-events.ts'
import { MIGRATIONS } from '../../src/audit/sql/migrations.generated.ts'
import { withSchema } from '../../src/audit/sql/schema.ts'
import { createAuditSummary } from '../../src/audit/sql/summary.ts'
import { KINDS, startDatabase } from './databases.ts'
import { anEvent } from './event.ts'
import { prepare } from './prepared.ts'

const EVENTS = Number(process.argv[2] ?? 1_000_000)
const ONLY = process.argv[3]
const BATCH = 1_000
const WEEK_MS = 7 * 86_400_000
const RUNS = 7
const REASONS = ['token_rejected:exp', 'limit_exceeded:standard', 'permission_missing:orders:write']

const untilMs = Math.floor(Date.now() / 60_000) * 60_000
const sinceMs = untilMs - WEEK_MS
const seal = createCheckpointSealer([])
const base = anEvent()

function eventAt(at: number) {
  const isRefused = at % 7 === 0
  return anEvent({
    id: v7(),
    requestId: v7({ msecs: sinceMs + (at * WEEK_MS) / EVENTS }),
    time: new Date(sinceMs + (at * WEEK_MS) / EVENTS).toISOString(),
    actor: { ...base.actor, subject: `user-${at % 5_000}`, tenant: `tenant-${at % 50}` },
    route: `/route/${at % 25}`,
    address: `192.0.2.${at % 256}`,
    decision: isRefused ? 'deny' : 'allow',
    reason: isRefused ? (REASONS[at % REASONS.length] ?? '') : 'ok',
    status: isRefused ? 403 : 200,
  })
}

async function timeOf(work: () => Promise<unknown>): Promise<string> {
  const times: number[] = []
  for (let run = 0; run < RUNS; run += 1) {
    const begin = performance.now()
    await work()
    times.push(performance.now() - begin)
  }
  times.sort((a, b) => a - b)
  return `median ${times[Math.floor(RUNS / 2)]?.toFixed(0)} ms, slowest ${times.at(-1)?.toFixed(0)} ms`
}

for (const kind of KINDS) {
  if (ONLY !== undefined && kind !== ONLY) continue
  const { db, close } = await startDatabase(kind)
  try {
    const begin = performance.now()
    for (let at = 0; at < EVENTS; at += BATCH) {
      const events = Array.from({ length: BATCH }, (_, one) => eventAt(at + one))
      await withSchema(db, MIGRATIONS, () =>
        insertAuditEvents(db, events, { seal, nowMs: untilMs }),
      )
    }
    const perEvent = ((performance.now() - begin) * 1_000) / EVENTS
    console.log(`${kind}: ${EVENTS} events, ${perEvent.toFixed(0)} us for each to store`)
    const { results } = await prepare(
      db,
      'SELECT count(*) AS hours, sum(length(counts)) AS bytes FROM audit_counts',
    ).all()
    console.log(`${kind}: counts`, JSON.stringify(results[0]))
    const log = createAuditLog(db)
    const summaries = createAuditSummary(db)
    const period = { sinceMs, untilMs }
    const hour = { sinceMs: untilMs - 3_600_000, untilMs }
    const since = new Date(sinceMs).toISOString()
    const work: Readonly<Record<string, () => Promise<unknown>>> = {
      'summary of a week': () => summaries.summarize({ limit: 200 }, period),
      'summary of an hour': () => summaries.summarize({ limit: 200 }, hour),
      'summary of refusals in a week': () =>
        summaries.summarize({ limit: 200, decision: 'deny' }, period),
      'page of events': () => log.query({ limit: 50, since }),
      'page of refusals': () => log.query({ limit: 50, since, decision: 'deny' }),
      'page of a subject': () => log.query({ limit: 50, since, subject: 'user-17' }),
    }
    for (const [name, each] of Object.entries(work))
      console.log(`${kind}: ${name}: ${await timeOf(each)}`)
  } finally {
    await close()
  }
}

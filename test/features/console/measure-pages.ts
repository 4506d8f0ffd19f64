/**
 * Measures pages of the console over HTTP, over many events: `node test/features/console/measure-pages.ts [events]
 * [SQLite|PostgreSQL|D1] [folder]`. The gateway of D1 is a Worker in workerd; the others are servers on Node. A folder keeps
 * the events of D1 for the next run, which then measures at once.
 */
import { existsSync, globSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { v7 } from 'uuid'
import * as z from 'zod/mini'
import { createCheckpointSealer } from '../../../src/audit/chain.ts'
import { insertAuditEvents } from '../../../src/audit/sql/audit-chain.ts'
import { withSchema } from '../../../src/audit/sql/schema.ts'
import { summarySchema } from '../../../src/audit/summary.ts'
import { consumerDatabase } from '../../../src/runtimes/node/audit/database.ts'
import { openDatabase } from '../../../src/runtimes/node/audit/open-database.ts'
import { anEvent } from '../../audit/event.ts'
import { migrationsOf } from '../../audit/prepared.ts'
import { startGateway } from '../../harness/gateway.ts'
import { startPostgres } from '../../harness/postgres.ts'
import { freePort } from '../../harness/process.ts'
import { startMiniflare } from '../../origin/miniflare.ts'
import { openSession, SIGN_IN_VARIABLES } from '../operators/sessions.ts'
import { DATABASE_PATH, policyWith, ROWS_READ } from './policy.ts'

const EVENTS = Number(process.argv[2] ?? 1_000_000)
const KINDS = ['SQLite', 'PostgreSQL', 'D1'].filter((kind) => kind === (process.argv[3] ?? kind))
const KEPT = process.argv[4]
const BATCH = 1_000
const RUNS = 15
const WEEK_MS = 7 * 86_400_000
const REASONS = ['token_rejected:exp', 'limit_exceeded:standard', 'permission_missing:orders:write']
const ENTRY = 'test/features/console/worker.ts'

/** What the live tail reads every two seconds. */
const TAIL_MS = 30_000
const oneEvent = z.object({ events: z.array(z.object({ requestId: z.string() })) })

const untilMs = Date.now()
const sinceMs = untilMs - WEEK_MS
const seal = createCheckpointSealer([])
const base = anEvent()

function eventAt(at: number) {
  const ms = sinceMs + (at * WEEK_MS) / EVENTS
  const isRefused = at % 7 === 0
  return anEvent({
    ...{ id: v7(), requestId: v7({ msecs: ms }), time: new Date(ms).toISOString() },
    actor: { ...base.actor, subject: `user-${at % 5_000}`, tenant: `tenant-${at % 50}` },
    ...{ route: `/route/${at % 25}`, address: `192.0.2.${at % 256}` },
    decision: isRefused ? 'deny' : 'allow',
    reason: isRefused ? (REASONS[at % REASONS.length] ?? '') : 'ok',
    status: isRefused ? 403 : 200,
  })
}

async function fill(address: string): Promise<void> {
  const database = await openDatabase(address)
  const db = consumerDatabase(database)
  for (let at = 0; at < EVENTS; at += BATCH) {
    const events = Array.from({ length: BATCH }, (_, one) => eventAt(at + one))
    await withSchema(db, migrationsOf(db), () =>
      insertAuditEvents(db, events, { seal, nowMs: untilMs }),
    )
  }
  await database.close()
}

/** Copies the tables of a filled database into the one of D1, which has been created. */
function copy(from: string, to: string): void {
  const database = new DatabaseSync(to)
  database.exec(`ATTACH '${from}' AS filled`)
  const tables = database
    .prepare(
      "SELECT name, sql FROM filled.sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite%' ORDER BY type = 'table' DESC",
    )
    .all()
  for (const { name, sql } of tables) {
    database.exec(String(sql))
    if (String(sql).startsWith('CREATE TABLE'))
      database.exec(`INSERT INTO main.${String(name)} SELECT * FROM filled.${String(name)}`)
  }
  database.close()
}

const folder = KEPT ?? mkdtempSync(join(tmpdir(), 'portcullis-pages-'))
mkdirSync(folder, { recursive: true })
for (const kind of KINDS) {
  const postgres = kind === 'PostgreSQL' ? await startPostgres() : undefined
  const file = join(folder, `${kind}.db`)
  const address = (await postgres?.database('pages')) ?? `sqlite:${file}`
  const isWorker = kind === 'D1'
  const d1 = join(folder, 'd1')
  const isFilled = isWorker && existsSync(d1)
  if (!isFilled) await fill(address)
  if (isWorker && !isFilled) {
    // Creates the file, with a name that D1 derives from the binding.
    const port = await freePort()
    const parts = { entry: ENTRY, vars: {}, port, d1: 'AUDIT_DB', folder: d1 }
    const worker = await startMiniflare(parts)
    const body = JSON.stringify([{ sql: 'SELECT 1', values: [] }])
    await fetch(`http://127.0.0.1:${port}${DATABASE_PATH}`, { method: 'POST', body })
    await worker.stop()
    for (const database of globSync(`${d1}/**/*.sqlite`))
      if (!database.endsWith('metadata.sqlite')) copy(file, database)
  }
  const gateway = await startGateway({
    ...{ runtime: isWorker ? 'workerd' : 'Node', redis: isWorker ? 'rest' : 'resp' },
    ...{ publicUrl: 'own', policy: policyWith(), entry: ENTRY, signs: true },
    ...{ d1: 'AUDIT_DB', d1Folder: d1 },
    variables: { ...SIGN_IN_VARIABLES, ...(!isWorker && { AUDIT_DATABASE: address }) },
  })
  const cookie = await openSession(gateway.redis, gateway.publicUrl, { roles: ['operator'] })
  const token = await gateway.token({ claims: { roles: ['operator'] } })

  async function measure(name: string, path: string, headers: Record<string, string>) {
    const times: number[] = []
    let rows: string | null = null
    for (let run = 0; run < RUNS; run += 1) {
      const begin = performance.now()
      const response = await fetch(gateway.url + path, { headers })
      const text = await response.text()
      times.push(performance.now() - begin)
      rows = response.headers.get(ROWS_READ)
      if (response.status !== 200) throw new Error(`${path}: ${response.status} ${text}`)
      if (text.includes('cannot be shown')) throw new Error(`${path}: no audit database`)
    }
    const [first = 0, ...rest] = times
    rest.sort((a, b) => a - b)
    const median = rest[Math.floor(rest.length / 2)] ?? 0
    const shown = [first, median, rest.at(-1) ?? 0].map((ms) => `${ms.toFixed(0)} ms`)
    const read = rows === null ? '' : `, ${rows} rows read`
    console.log(
      `${kind}: ${name}: first ${shown[0]}, median ${shown[1]}, slowest ${shown[2]}${read}`,
    )
  }

  const page = { Cookie: cookie, Accept: 'text/html' }
  const call = { Authorization: `Bearer ${token}` }
  const since = new Date(sinceMs).toISOString()
  const recently = new Date(untilMs - TAIL_MS).toISOString()

  async function newestRequest(): Promise<string> {
    const response = await fetch(`${gateway.url}/-/admin/audit?limit=1`, { headers: call })
    const { events } = z.parse(oneEvent, await response.json())
    return events[0]?.requestId ?? ''
  }

  try {
    const week = await fetch(`${gateway.url}/-/admin/audit/summary?since=${since}`, {
      headers: call,
    })
    const { allow, deny } = z.parse(summarySchema, await week.json())
    console.log(`${kind}: ${allow + deny} decisions`)
    await measure('decisions, an hour', '/-/console/decisions', page)
    await measure('decisions, a week', '/-/console/decisions?last=7d', page)
    await measure('decisions, refusals', '/-/console/decisions?last=7d&decision=deny', page)
    await measure('decisions, a subject', '/-/console/decisions?last=7d&q=user-17', page)
    const requestId = await newestRequest()
    await measure('decisions, one request', `/-/console/decisions/${requestId}`, page)
    await measure('a caller', '/-/console/callers?kind=subject&value=user-17', page)
    await measure('audit chain', '/-/console/audit', page)
    await measure('a poll of the live tail', `/-/admin/audit?since=${recently}&limit=200`, call)
    await measure('overview, an hour', '/-/console', page)
    await measure('overview, a week', '/-/console?last=7d', page)
    await measure('summary, an hour', '/-/admin/audit/summary', call)
    await measure('summary, a week', `/-/admin/audit/summary?since=${since}`, call)
    await measure(
      'summary, a subject',
      `/-/admin/audit/summary?since=${since}&subject=user-17`,
      call,
    )
  } finally {
    await gateway.close()
    await postgres?.close()
  }
}
if (KEPT === undefined) rmSync(folder, { recursive: true, force: true })

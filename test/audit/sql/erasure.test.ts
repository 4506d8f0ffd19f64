/** How much one run of an erasure does in rows of earlier versions. */
import { afterAll, expect, test } from 'vitest'
import { createCheckpointSealer } from '../../../src/audit/chain.ts'
import { createErasureOrders } from '../../../src/audit/sql/erasure-orders.ts'
import { MIGRATIONS } from '../../../src/audit/sql/migrations.generated.ts'
import { withSchema } from '../../../src/audit/sql/schema.ts'
import { carryOutErasures } from '../../../src/runtimes/audit/upkeep.ts'
import { consumerDatabase, type RunStatements } from '../../../src/runtimes/node/audit/database.ts'
import { openDatabase } from '../../../src/runtimes/node/audit/open-database.ts'
import { prepare } from '../prepared.ts'

const ISSUER = 'https://issuer.example'
const PERSON = 'anne'
/** Queries of one invocation of a Worker in the free plan of D1. */
const MAX_QUERIES = 50
/** More than one run reads. */
const ROWS = 25_000

const file = await openDatabase('sqlite::memory:')
afterAll(() => file.close())
const counted = { queries: 0, changesRead: 0 }
const run: RunStatements = async (statements) => {
  const all = await file.run(statements)
  counted.queries += statements.length
  for (const { rows } of all)
    counted.changesRead += rows.filter((row) => Object.hasOwn(row as object, 'change')).length
  return all
}
const db = consumerDatabase({ ...file, run })

/** Adds rows whose changes may name any person; each thousandth, and the last one, names this one. */
async function addRows() {
  const change = (target: string) => `{"action":"limit.reset","target":"standard:${target}"}`
  const text = `WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
    INSERT INTO audit_events (id, time_ms, request_id, trace_id, method, decision, reason, status, limits,
      durations_ms, address, change)
    SELECT printf('%08d', n), n, '', '', 'POST', 'allow', 'ok', 200, '[]', '{}', '',
      CASE WHEN n % 1000 = 0 THEN ? ELSE ? END FROM numbers`
  await prepare(db, text).bind(ROWS, change(PERSON), change('b%2Fc')).run()
}

test('each run of an erasure reads a bounded part of the changes, and the next one continues there', async () => {
  const orders = createErasureOrders(db, Date.now)
  await withSchema(db, MIGRATIONS, () => prepare(db, 'SELECT change_id FROM audit_erasures').all())
  const { id } = await orders.order({ issuer: ISSUER, subject: PERSON })
  await addRows()
  const upkeep = { db, bucket: undefined, seal: createCheckpointSealer([]), nowMs: Date.now() }
  const named = () =>
    prepare(db, `SELECT count(*) AS n FROM audit_events WHERE change LIKE '%${PERSON}%'`).first()
  const states: unknown[] = []
  while (states.at(-1) !== 'done' && states.length < 5) {
    counted.queries = 0
    await carryOutErasures(upkeep)
    expect(counted.queries).toBeLessThan(MAX_QUERIES)
    states.push((await orders.find(id))?.state)
  }
  expect(states).toEqual(['running', 'running', 'done'])
  expect(await named()).toEqual({ n: 0 })
  // No row was read by two runs.
  expect(counted.changesRead).toBe(ROWS)
})

/**
 * A process that appends batches of events to the audit database of `AUDIT_DATABASE` until it is
 * killed. Prints the ids of each batch after it is stored.
 */
import { createCheckpointSealer } from '../../src/audit/chain.ts'
import { insertAuditEvents } from '../../src/audit/sql/audit-chain.ts'
import { isFault } from '../../src/audit/sql/database.ts'
import { withSchema } from '../../src/audit/sql/schema.ts'
import { consumerDatabase } from '../../src/runtimes/node/audit/database.ts'
import { openDatabase } from '../../src/runtimes/node/audit/open-database.ts'
import { anEvent } from './event.ts'

const BATCH = 20

const database = await openDatabase(process.env.AUDIT_DATABASE ?? '')
const db = consumerDatabase(database)
const seal = createCheckpointSealer([])

async function append() {
  const events = Array.from({ length: BATCH }, () => anEvent())
  const store = () => insertAuditEvents(db, events, { seal, nowMs: Date.now() })
  try {
    await withSchema(db, database.migrations, store)
    console.log(events.map(({ id }) => `stored ${id}`).join('\n'))
  } catch (error) {
    // As the consumer does after too many lost races. It repeats the batch later.
    if (!isFault(error, 'constraint')) throw error
    console.log('overtaken')
  }
}

for (;;) await append()

/** Prints the young generation, in MB, of a thread that has the limits of the thread of the audit trail. */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { createAuditTrail } from '../../src/runtimes/node/audit/trail.ts'

const CODE = `
  import { parentPort } from 'node:worker_threads'
  import { getHeapSpaceStatistics } from 'node:v8'
  // A part of what is created survives a collection, so that V8 makes the young generation as large as it may.
  const kept = []
  for (let number = 0; number < 2_000_000; number += 1) kept[number % 200_000] = { number }
  const young = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')
  parentPort.postMessage(young.space_size / 1_048_576)
`
let started
process.once('worker', (worker) => {
  started = worker
})
const trail = createAuditTrail({
  AUDIT_DATABASE: 'sqlite::memory:',
  REDIS_URL: 'redis://127.0.0.1:6379',
})
await trail.open()
const { resourceLimits } = started
await trail.close()
const code = new URL(`data:text/javascript,${encodeURIComponent(CODE)}`)
const [megabytes] = await once(new Worker(code, { resourceLimits }), 'message')
console.log(megabytes)

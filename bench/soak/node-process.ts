/** A gateway of the soak on Node, as `portcullis serve` runs it. */
import { boundHeap } from '../../cli/heap-flags.ts'
import { serve } from '../../src/runtimes/node/index.ts'
import { recordPauses } from './pauses.ts'
import policy from './policy.ts'

boundHeap()
const pauses = recordPauses()
const server = await serve({ policy })
process.on('message', () => {
  gc?.()
  process.send?.({ bytes: process.memoryUsage().heapUsed, pauses: pauses() })
})
process.once('SIGTERM', () => void server.close().then(() => process.exit()))
console.log(`Portcullis is ready on ${server.url}`)

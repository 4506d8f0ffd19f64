/** A gateway of the soak on Node, as `portcullis serve` runs it. */
import { boundHeap } from '../../cli/heap-flags.ts'
import { serve } from '../../src/runtimes/node/index.ts'
import policy from './policy.ts'

boundHeap()
const server = await serve({ policy })
process.on('message', () => {
  gc?.()
  process.send?.(process.memoryUsage().heapUsed)
})
process.once('SIGTERM', () => void server.close().then(() => process.exit()))
console.log(`Portcullis is ready on ${server.url}`)

/** A gateway of the soak on Node, as `portcullis serve` runs it. */
import { policyIn } from '../../dev/start/serve-node.ts'
import { serve } from '../../src/node/index.ts'

const server = await serve({ policy: await policyIn(process.env.PORTCULLIS_CONFIG ?? '') })
process.on('message', () => {
  gc?.()
  process.send?.(process.memoryUsage().heapUsed)
})
process.once('SIGTERM', () => void server.close().then(() => process.exit()))
console.log(`Portcullis is ready on ${server.url}`)

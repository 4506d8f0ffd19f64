/** The gateway of `isolated-policy.ts` on Node. Ends with SIGTERM. */
import { serve } from '../../src/node/index.ts'
import policy from './isolated-policy.ts'

const server = await serve({ policy, port: 0, graceMs: 100 })
process.once('SIGTERM', async () => {
  await server.close()
  process.exit(0)
})
console.log(`ready on ${server.url}`)

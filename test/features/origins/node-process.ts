/** The gateway of a policy of this folder on Node: `POLICY`, or `isolated-policy.ts`. Ends with SIGTERM. */
import { serve } from '../../../src/runtimes/node/index.ts'

const { POLICY = './isolated-policy.ts' } = process.env
const { default: policy } = await import(POLICY)
const server = await serve({ policy, port: 0, graceMs: 100 })
process.once('SIGTERM', async () => {
  await server.close()
  process.exit(0)
})
console.log(`ready on ${server.url}`)

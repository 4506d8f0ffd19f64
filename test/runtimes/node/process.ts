/** A gateway in its own process, with the variables of its environment. `POLICY` is another file. Ends with SIGTERM. */
import { serve } from '../../../src/runtimes/node/index.ts'

const { default: policy } = await import(process.env.POLICY ?? './policy.ts')
const graceMs = Number(process.env.GRACE_MS ?? 10_000)
const port = Number(process.env.PORT ?? 0)
const server = await serve({ policy, port, graceMs })
process.once('SIGTERM', async () => {
  await server.close()
  process.exit(0)
})
console.log(`ready on ${server.url}`)

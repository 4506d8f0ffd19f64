/** A gateway that starts with the old policy, and uses the new one after SIGHUP. Ends with SIGTERM. */
import { serve } from '../../../src/runtimes/node/index.ts'
import { POLICIES } from './policy.ts'

/** Of an imagined file of each policy. */
const DIGESTS = { old: 'a'.repeat(64), new: 'b'.repeat(64) } as const

const version = process.env.POLICY_VERSION === 'new' ? 'new' : 'old'
const server = await serve({ policy: POLICIES[version], policyDigest: DIGESTS[version] })
process.on('SIGHUP', async () => {
  await server.reload(POLICIES.new, { digest: DIGESTS.new })
  console.log('uses the new policy')
})
process.once('SIGTERM', async () => {
  await server.close()
  process.exit(0)
})
console.log(`ready on ${server.url}`)

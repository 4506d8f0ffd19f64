/** Our gateway on Node: the shipped policy, with the limit of `LIMIT`. */
import cluster from 'node:cluster'
import { join } from 'node:path'
import { policyIn } from '../../dev/start/serve-node.ts'
import { ROOT } from '../../dev/start/settings.ts'
import { type Policy, serve } from '../../src/runtimes/node/index.ts'
import { browserPolicy } from '../workers/browser-policy.ts'
import { leased, roomy } from '../workers/policy.ts'
import { relatedPolicy } from '../workers/relations-policy.ts'
import { HOST, LIMIT } from './environment.ts'

/** How each variant changes the policy. */
const CHANGES: Readonly<Record<string, (policy: Policy) => Policy>> = {
  strict: (policy) => policy,
  leased,
  related: (policy) => relatedPolicy(policy, ''),
  browser: (policy) => browserPolicy(policy, ''),
}

if (cluster.isPrimary && process.env.PROCESSES !== undefined) {
  cluster.schedulingPolicy = cluster.SCHED_NONE
  for (let count = Number(process.env.PROCESSES); count > 0; count--) cluster.fork()
} else {
  const shipped = roomy(await policyIn(join(ROOT, 'portcullis.config.ts')), '', LIMIT)
  const change = CHANGES[process.env.VARIANT ?? 'strict']
  if (change === undefined) throw new Error(`unknown variant ${process.env.VARIANT}`)
  const { abuse } = shipped
  // Without a proxy, all requests come from this address.
  const policy = change({
    ...shipped,
    abuse: { ...abuse, exempt: [...abuse.exempt, `${HOST}/32`] },
  })
  await serve({ policy })
}

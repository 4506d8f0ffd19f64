/** The gateway of the fuzz on Node, with reports about itself. Its audit events are lines of stdout. */
import { serve } from '../../src/runtimes/node/index.ts'
import { policyWith } from './policy.ts'

/** What must not be left over, and what must not happen. */
export interface Report {
  /** Open handles and timers, by type. */
  readonly resources: Readonly<Record<string, number>>
  readonly unhandledRejections: number
  /** Warnings of Node, such as one about too many listeners. */
  readonly warnings: readonly string[]
}

let unhandledRejections = 0
const warnings: string[] = []
process.on('unhandledRejection', (error) => {
  unhandledRejections += 1
  console.error('unhandled rejection', error)
})
process.on('warning', ({ name, message }) => warnings.push(`${name}: ${message}`))

const server = await serve({ policy: policyWith('slots'), port: 0, graceMs: 10_000 })
process.on('message', () => {
  const resources: Record<string, number> = {}
  for (const type of process.getActiveResourcesInfo()) resources[type] = (resources[type] ?? 0) + 1
  process.send?.({ resources, unhandledRejections, warnings } satisfies Report)
})
process.once('SIGTERM', () => void server.close().then(() => process.exit()))
process.send?.(server.url)

import type { TestProject } from 'vitest/node'
import { type Stack, startStack } from '../harness/stack.ts'
import { keysOf } from '../harness/stack-redis.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    stack: Stack
  }
}

const MAX_ATTEMPTS = 40
const RETRY_MS = 250

/**
 * One stack for all black-box files, because starting it is slow. At the end all keys in Redis are
 * checked (S34, S40); an error here fails the run.
 */
export default async function setup(project: TestProject) {
  const isCluster = project.name === 'blackbox-cluster'
  const { close, ...stack } = await startStack(
    isCluster || project.name === 'blackbox-node' ? 'node' : 'workerd',
    isCluster ? 'cluster' : 'server',
  )
  project.provide('stack', stack)
  return async function teardown() {
    const redis = keysOf(stack)
    try {
      await leaveSomething(stack)
      const complaints = await redis.complaints()
      if (complaints.length > 0)
        throw new Error(
          `after the tests, the keys in Redis differ from the documentation:\n${complaints.join('\n')}`,
        )
    } finally {
      redis.disconnect()
      await close()
    }
  }
}

/**
 * Has the gateway write a key: the files may have emptied this Redis, and an empty Redis proves
 * nothing. The last file may have left a circuit breaker open, which probes within 5 s.
 */
async function leaveSomething({ gateways: [gateway] }: Stack): Promise<void> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const { status } = await fetch(`${gateway}/public/ping`)
    if (status === 200 || status === 429) return
    await new Promise((done) => setTimeout(done, RETRY_MS))
  }
  throw new Error(`${gateway} does not answer after the tests`)
}

import { Redis } from 'ioredis'
import type { TestProject } from 'vitest/node'
import { complaintsAbout } from '../harness/redis-dump.ts'
import { type Stack, startStack } from '../harness/stack.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    stack: Stack
  }
}

/**
 * One stack for all black-box files: starting it is the slow part. When they have run, everything
 * that they left in Redis is looked through (S34, S40): an error here fails the run.
 */
export default async function setup(project: TestProject) {
  const { close, ...stack } = await startStack()
  project.provide('stack', stack)
  return async function teardown() {
    const redis = new Redis(stack.redisUrl)
    try {
      const complaints = await complaintsAbout(redis)
      if (complaints.length > 0)
        throw new Error(`after the tests, Redis is not as documented:\n${complaints.join('\n')}`)
    } finally {
      redis.disconnect()
      await close()
    }
  }
}

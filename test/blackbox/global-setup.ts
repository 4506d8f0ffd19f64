import type { TestProject } from 'vitest/node'
import { type Stack, startStack } from '../harness/stack.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    stack: Stack
  }
}

/** One stack for all black-box files: starting it is the slow part. */
export default async function setup(project: TestProject) {
  const { close, ...stack } = await startStack()
  project.provide('stack', stack)
  return close
}

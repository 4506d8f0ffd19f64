/** Runs calls of tools through the gateway's own pipeline, in memory. */
import { policyTest } from 'portcullis/testing'
import { test } from 'vitest'
import tools from './tools.policy-test.ts'

test('readers list notes, and only writers add them', () => policyTest(tools))

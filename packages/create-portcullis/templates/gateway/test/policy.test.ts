/** Runs the table of decisions through the gateway's own pipeline, in memory. */
import { policyTest } from 'portcullis/testing'
import { test } from 'vitest'
import notes from './notes.policy-test.ts'

test('readers read notes, and only writers write them', () => policyTest(notes))

/** Runs requests through the gateway's own pipeline, in memory. */
import { policyTest } from 'portcullis/testing'
import { test } from 'vitest'
import policy from '../portcullis.config.ts'

const reader = { sub: 'alice', roles: ['reader'] }
const writer = { sub: 'bob', roles: ['writer'] }
const body = { text: 'Buy milk' }

test('readers read notes, and only writers write them', () =>
  policyTest(policy, [
    { request: 'GET /notes', as: reader, expect: 'allowed' },
    { request: 'GET /notes', expect: 'missing_token' },
    { request: 'POST /notes', as: writer, body, expect: 'allowed' },
    { request: 'POST /notes', as: reader, body, expect: 'insufficient_permission' },
    { request: 'POST /notes', as: writer, body: { text: '' }, expect: 'invalid_input' },
    { request: 'DELETE /notes', as: writer, expect: 405 },
  ]))

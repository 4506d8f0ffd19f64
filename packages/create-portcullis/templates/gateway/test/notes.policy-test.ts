/** Requests and expected decisions, which `npm run policy:test` and `npm test` run in memory. */
import type { PolicyTestTable } from 'portcullis/testing'
import policy from '../portcullis.config.ts'

const reader = { sub: 'alice', roles: ['reader'] }
const writer = { sub: 'bob', roles: ['writer'] }
const body = { text: 'Buy milk' }

export default {
  policy,
  rows: [
    { request: 'GET /notes', as: reader, expect: 'allowed' },
    { request: 'GET /notes', expect: 'missing_token' },
    { request: 'POST /notes', as: writer, body, expect: 'allowed' },
    { request: 'POST /notes', as: reader, body, expect: 'insufficient_permission' },
    { request: 'POST /notes', as: writer, body: { text: '' }, expect: 'invalid_input' },
    { request: 'DELETE /notes', as: writer, expect: 405 },
  ],
} satisfies PolicyTestTable

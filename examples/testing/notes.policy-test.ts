/** Requests and expected decisions. `portcullis policy test` runs them, and so does vitest. */
import type { PolicyTestTable } from 'portcullis/testing'
import policy from './policy.ts'

const reader = { sub: 'alice', roles: ['reader'] }
const writer = { sub: 'bob', roles: ['writer'] }

export default {
  policy,
  rows: [
    { request: 'GET /notes', expect: 'missing_token' },
    { request: 'GET /notes', as: reader, expect: 'allowed' },
    { request: 'POST /notes', as: reader, body: { text: 'x' }, expect: 'insufficient_permission' },
    { request: 'POST /notes', as: writer, body: { text: 'x' }, expect: 'allowed' },
    { request: 'POST /notes', as: writer, body: { text: '' }, expect: 'invalid_input' },
    { request: 'DELETE /notes', as: writer, expect: 405 },
  ],
} satisfies PolicyTestTable

/** The decisions that docs/tutorial.md tests. */
import type { PolicyTestTable } from 'portcullis/testing'
import policy from './portcullis.config.ts'

const reader = { sub: 'alice', roles: ['reader'] }
const writer = { sub: 'bob', roles: ['writer'] }

export default {
  policy,
  rows: [
    { request: 'GET /notes', expect: 401 },
    { request: 'GET /notes', as: reader, expect: 'allowed' },
    { request: 'POST /notes', as: reader, body: { text: 'x' }, expect: 'insufficient_permission' },
    { request: 'POST /notes', as: writer, body: { text: 'x' }, expect: 'allowed' },
    { request: 'POST /notes', as: writer, body: { text: '' }, expect: 'invalid_input' },
  ],
} satisfies PolicyTestTable

/** Calls of tools and expected decisions, which `npm run policy:test` and `npm test` run in memory. */
import type { PolicyTestTable } from 'portcullis/testing'
import policy from '../portcullis.config.ts'

const reader = { sub: 'alice', roles: ['reader'] }
const writer = { sub: 'bob', roles: ['writer'] }
const call = (name: string, args: object) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name, arguments: args },
})

export default {
  policy,
  rows: [
    { request: 'POST /mcp', as: reader, body: call('list_notes', {}), expect: 'allowed' },
    { request: 'POST /mcp', body: call('list_notes', {}), expect: 401 },
    { request: 'POST /mcp', as: writer, body: call('add_note', { text: 'a' }), expect: 'allowed' },
    { request: 'POST /mcp', as: reader, body: call('add_note', { text: 'a' }), expect: 403 },
    { request: 'POST /mcp', as: writer, body: call('add_note', { text: '' }), expect: 422 },
    { request: 'POST /mcp', as: writer, body: call('delete_note', {}), expect: 403 },
  ],
} satisfies PolicyTestTable

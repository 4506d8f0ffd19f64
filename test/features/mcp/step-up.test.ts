/** Step-up of callers of MCP servers: a JSON-RPC error, with the challenge of RFC 9470. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { call, type JsonRpcError, type McpGateway, startMcpGateway } from './gateway.ts'

let gateway: McpGateway
beforeAll(async () => {
  gateway = await startMcpGateway({ authentication: { acr: ['mfa'], maxAgeSeconds: 300 } })
  gateway.answerWith(({ id }) => ({ jsonrpc: '2.0', id, result: {} }))
})
afterAll(() => gateway?.close())

test('a call without the login is refused with a reason for the model and the challenge for the client', async () => {
  const response = await gateway.send(call('list_shelves', {}, 'a-1'))
  expect([response.status, response.headers.get('Content-Type')]).toEqual([401, 'application/json'])
  const { error, id } = (await response.json()) as JsonRpcError
  expect([id, error.code, error.data.code]).toEqual([
    'a-1',
    -32_000,
    'insufficient_user_authentication',
  ])
  expect(error.message).toBe('This request needs a login of the kind mfa, at most 300 seconds ago.')
  expect(response.headers.get('WWW-Authenticate')).toContain(
    'error="insufficient_user_authentication", acr_values="mfa", max_age=300, resource_metadata="',
  )
  expect(gateway.received).toEqual([])
})

test('a call with the login reaches the server', async () => {
  const claims = { acr: 'mfa', auth_time: Math.floor(Date.now() / 1000) }
  const token = await gateway.token('alice', ['reader'], claims)
  const headers = { Authorization: `Bearer ${token}` }
  expect((await gateway.send(call('list_shelves'), headers)).status).toBe(200)
  expect(gateway.received).toMatchObject([{ headers: { 'x-auth-acr': 'mfa' } }])
})

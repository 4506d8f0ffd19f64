import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  type CodeGateway,
  MCP,
  newVerifier,
  PUBLIC_URL,
  REDIRECT_URI,
  startCodeGateway,
} from './code-gateway.ts'

let gateway: CodeGateway
beforeAll(async () => {
  gateway = await startCodeGateway({ scopes: { 'mcp:use': 'Use the library' } })
})
afterAll(() => gateway.close())

test('a public client gets tokens for a user who allows it, and refreshes them', async () => {
  const id = await gateway.createClient()
  const verifier = newVerifier()
  const cookie = gateway.signIn()
  const page = await gateway.authorize(gateway.requestOf(id, verifier), cookie)
  expect(page.status).toBe(200)
  expect(page.text).toContain('Use the library')
  expect(page.text).toContain('app.example.com')
  const decided = await gateway.decide(page, cookie)
  expect(decided.status).toBe(303)
  expect(decided.location?.startsWith(`${REDIRECT_URI}?code=`)).toBe(true)
  expect(decided.answer.get('iss')).toBe(PUBLIC_URL)
  expect(decided.answer.get('state')).toBe('st')
  const issued = await gateway.redeem(id, decided.answer.get('code') ?? '', verifier)
  expect(issued.body).toMatchObject({ token_type: 'Bearer', scope: 'mcp:use books:read' })
  expect((await gateway.call(issued.body.access_token)).status).toBe(200)
  const refreshed = await gateway.refresh(id, issued.body.refresh_token, { resource: MCP })
  expect(refreshed.status).toBe(200)
  expect((await gateway.call(refreshed.body.access_token)).status).toBe(200)
})

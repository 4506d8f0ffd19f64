import { afterAll, beforeAll, expect, test } from 'vitest'
import { startGateway, type TestGateway } from './gateway.ts'

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startGateway()
})
afterAll(() => gateway.close())

test.each([
  ['/bans??limit=1', 422],
  ['/bans?%3Flimit=1', 422],
  ['/bans?limit=%31', 200],
  ['/bans?%6cimit=1&limit=2', 422],
  ['/bans?limit=%ff', 422],
  ['/clients?cursor=%ff', 422],
  [`/clients?cursor=${'%ff'.repeat(30)}`, 422],
  // The guard counts characters: this is the maximum length of a subject. The gateway has no audit database.
  [`/audit?subject=${'%C3%A9'.repeat(255)}`, 503],
  [`/audit?subject=${'%C3%A9'.repeat(256)}`, 422],
  [`/audit?subject=${'%ff'.repeat(255)}`, 422],
  [`/audit?reason=${'%C3%28'.repeat(200)}`, 422],
])('the guard and the call read the same query: %s is %i [S63]', async (path, status) => {
  const reply = await gateway.admin('GET', path)
  expect(reply.status, reply.text).toBe(status)
})

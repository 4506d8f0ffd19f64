/**
 * Observe mode from outside: every caller is served, and operators see who would have been refused.
 */
import { afterAll, beforeAll, beforeEach, expect, inject, test, vi } from 'vitest'
import { fromAddress, newAddress } from '../harness/address.ts'
import { forget, recordsOf } from '../harness/control.ts'
import { mint } from '../harness/issuer.ts'
import { freePort, type Running, run } from '../harness/process.ts'
import { portcullis } from './operator-cli.ts'

const stack = inject('stack')
const VIOLATIONS = 5
const PATIENCE = { timeout: 30_000, interval: 500 }

let gateway: Running
let url: string
beforeAll(async () => {
  const port = String(await freePort())
  url = `http://127.0.0.1:${port}`
  const policy = { PORTCULLIS_CONFIG: 'test/harness/observing-policy.ts' }
  // Its own PUBLIC_URL, because it accepts its own tokens.
  const env = { ...stack.env, ...policy, PUBLIC_URL: url, PORT: port }
  gateway = await run(stack.command, env, 'Portcullis is ready on')
})
afterAll(() => gateway.stop())
beforeEach(() => forget(stack.origin))

/** Returns the response to a request and the request's id. */
async function send(path: string, token: string, address: string) {
  const headers = { authorization: `Bearer ${token}`, ...fromAddress(address) }
  const response = await fetch(url + path, { headers })
  await response.arrayBuffer()
  return { status: response.status, id: response.headers.get('x-request-id'), response }
}

const operate = (...args: string[]) => portcullis(url, stack.operator, args)

/** Returns the observed rules of a request from the audit trail. */
function observedOf(id: string | null, reason: string): Promise<string[]> {
  return vi.waitFor(async () => {
    const { events } = await operate('audit', 'query', '--observed', reason, '--limit', '100')
    const event = events.find(({ requestId }: { requestId: string }) => requestId === id)
    if (event === undefined) throw new Error(`no event of ${id} has ${reason}`)
    expect(event).toMatchObject({ decision: 'allow', reason: 'ok', status: 200 })
    return event.observed
  }, PATIENCE)
}

test('an observed limit, permission, throttle and ban refuse no request, and are audited [S66]', async () => {
  const address = newAddress()
  const alice = await mint(stack.inlineKey)
  for (let sent = 0; sent < 2; sent++)
    expect((await send('/orders', alice, address)).status).toBe(200)
  const over = await send('/orders', alice, address)
  expect(over.status).toBe(200)
  expect(over.response.headers.get('ratelimit-policy')).toBeNull()
  const unpermitted = await send('/reports', alice, address)
  expect(unpermitted.status).toBe(200)
  expect(await recordsOf(stack.origin)).toHaveLength(4)

  for (let sent = 0; sent < VIOLATIONS; sent++)
    expect((await send('/orders', 'a.b.c', address)).status).toBe(401)
  await vi.waitFor(async () => {
    const { bans } = await operate('bans', 'list', '--limit', '100')
    const value = address.replace(/::1$/, '::/64')
    expect(bans).toContainEqual(expect.objectContaining({ value, mode: 'observe' }))
  }, PATIENCE)
  const banned = await send('/reports', alice, address)
  expect(banned.status).toBe(200)
  expect((await send('/reports', alice, newAddress())).status).toBe(200)

  const lacks = 'permission_missing:reports:read'
  expect(await observedOf(over.id, 'rate_limited:watched')).toEqual(['rate_limited:watched'])
  expect(await observedOf(unpermitted.id, 'permission_missing')).toEqual([lacks])
  expect(await observedOf(banned.id, 'banned')).toEqual(['banned:address', lacks])
})

/**
 * Abuse of real gateways, judged by statuses, by requests at the origin, and by the operators' API.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test, vi } from 'vitest'
import { MIN_CHECKS_AT_ONCE } from '../../src/access/abuse/authentication-failures.ts'
import { fromAddress, newAddress } from '../harness/address.ts'
import { callsOfRequests, forget, recordsOf } from '../harness/control.ts'
import { createKey, ISSUER, mint } from '../harness/issuer.ts'
import { usualOrLong } from '../harness/long.ts'
import { keysOf } from '../harness/stack-redis.ts'
import { postAs } from './oauth-clients.ts'
import { portcullis } from './operator-cli.ts'

const stack = inject('stack')
const [here, there] = stack.gateways
const redis = keysOf(stack)
const VIOLATIONS = 5
/** Bad credentials of one address that are verified in a minute. */
const LIMIT = 20
const AT_ONCE = 50
/** The number of concurrent requests by other callers. */
const OTHERS = 4
/**
 * Signatures are counted in process, over thousands, in test/access/admission. `FLOOD=10000` sends as
 * many here too, and reports how long other callers wait meanwhile.
 */
const FLOOD = Number(process.env.FLOOD ?? usualOrLong(300, 2_000))
/** Longer for a measurement, which also sends as many valid requests, in turns. */
const FLOOD_TIMEOUT_MS = process.env.FLOOD === undefined ? 60_000 : 600_000
const HOUR = 3_600
/** Failures are counted behind responses, and a lifted ban stays cached for a moment. */
const PATIENCE = { timeout: 30_000, interval: 200 }

/** The issuer's `kid` with another key, so that only the signature is wrong. */
const stranger = await createKey(stack.inlineKey.kid)
const forged = await mint(stranger, { claims: { roles: ['admin'] } })
const [head = '', payload = '', signature = ''] = forged.split('.')
const claims = JSON.parse(Buffer.from(payload, 'base64url').toString())
const forgery = () =>
  `${head}.${Buffer.from(JSON.stringify({ ...claims, jti: crypto.randomUUID() })).toString('base64url')}.${signature}`
const good = (sub: string = crypto.randomUUID()) => mint(stack.inlineKey, { claims: { sub } })

/** Returns an address as the list of bans shows it. */
const groupOf = (address: string) => address.replace(/::1$/, '::/64')
const originCalls = async () => (await recordsOf(stack.origin)).length

/** Sends a request from `address`, or from the address of the test. */
function send(gateway: string, token: string, address?: string): Promise<Response> {
  return fetch(`${gateway}/orders`, {
    headers: {
      authorization: `Bearer ${token}`,
      ...(address !== undefined && fromAddress(address)),
    },
  })
}

async function statusOf(gateway: string, token: string, address?: string): Promise<number> {
  const response = await send(gateway, token, address)
  await response.arrayBuffer()
  return response.status
}

async function expectStatus(status: number, gateway: string, token: string, address?: string) {
  const seen: number[] = []
  await vi.waitFor(async () => {
    seen.push(await statusOf(gateway, token, address))
    expect(seen.at(-1)).toBe(status)
  }, PATIENCE)
  expect(seen).not.toContain(503)
}

async function expectBanned(gateway: string, token: string, address: string): Promise<void> {
  const response = await send(gateway, token, address)
  expect(response.status).toBe(403)
  expect(response.headers.get('content-type')).toBe('application/problem+json')
  expect(await response.json()).toMatchObject({ code: 'banned', status: 403 })
  const seconds = Number(response.headers.get('retry-after'))
  expect(seconds).toBeGreaterThan(HOUR - 300)
  expect(seconds).toBeLessThanOrEqual(HOUR)
}

/** The operator's token, to read bans by API and by command line. */
let operator = ''
async function admin(method: string, path: string): Promise<Response> {
  return fetch(`${here}/-/admin${path}`, {
    method,
    headers: { authorization: `Bearer ${operator}` },
  })
}

const operate = (...args: string[]) => portcullis(here, stack.operator, args)

interface Listed {
  readonly id: string
  readonly kind: string
  readonly value: string
}

/** Returns the ban of an address or a subject as the API lists it, or undefined. */
async function banOf(value: string): Promise<Listed | undefined> {
  const response = await admin('GET', '/bans?limit=100')
  const { bans } = (await response.json()) as { bans: Listed[] }
  return bans.find((ban) => ban.value === value)
}

beforeAll(async () => {
  const grant = { grant_type: 'client_credentials' }
  const response = await postAs(stack.operator, `${here}/oauth/token`, grant)
  operator = ((await response.json()) as { access_token: string }).access_token
})
afterAll(() => redis.disconnect())
beforeEach(() => forget(stack.origin))

/** Sends enough bad tokens for a ban, and waits for the ban, which is written behind responses. */
async function earnBan(address: string): Promise<Listed> {
  for (let sent = 0; sent < VIOLATIONS; sent++)
    expect(await statusOf(here, forgery(), address)).toBe(401)
  return vi.waitFor(async () => {
    const ban = await banOf(groupOf(address))
    if (ban === undefined) throw new Error(`${address} is not banned`)
    return ban
  }, PATIENCE)
}

describe('automatic bans', () => {
  test('five bad tokens ban their address at both gateways; the ban is listed and lifted, and the address is served [S44, S66]', async () => {
    const address = newAddress()
    const known = await good()
    await expectStatus(200, here, known, address)
    const ban = await earnBan(address)
    expect(ban).toMatchObject({ kind: 'address', mode: 'enforce', createdBy: 'portcullis' })

    await forget(stack.origin)
    for (const gateway of [here, there]) {
      await expectBanned(gateway, known, address)
      await expectBanned(gateway, await good(), address)
    }
    await expectBanned(here, forgery(), address)
    // A gateway without a cached ban refuses with it from the next request on.
    expect([401, 403]).toContain(await statusOf(there, forgery(), address))
    await vi.waitFor(async () => expectBanned(there, forgery(), address), PATIENCE)
    expect(await originCalls()).toBe(0)
    await expectStatus(200, here, known, newAddress())

    expect((await admin('DELETE', `/bans/${ban.id}`)).status).toBe(204)
    for (const gateway of [here, there]) await expectStatus(200, gateway, known, address)
    await expectStatus(200, there, await good(), address)
    expect(await banOf(groupOf(address))).toBeUndefined()
  })

  test('the command line lists, lifts and creates bans', async () => {
    const address = newAddress()
    const { id } = await earnBan(address)
    const { bans } = await operate('bans', 'list', '--limit', '100')
    expect(bans).toContainEqual(expect.objectContaining({ id, value: groupOf(address) }))
    await operate('bans', 'delete', id)
    await expectStatus(200, there, await good(), address)

    const ordered = await operate('bans', 'create', 'address', address, '--for', '1h')
    await expectBanned(here, await good(), address)
    await expectBanned(there, await good(), address)
    await operate('bans', 'delete', ordered.id)
    await expectStatus(200, here, await good(), address)
  })

  test('a caller who continues over its limit is banned as a subject, from every address [R18]', async () => {
    const sub = crypto.randomUUID()
    const token = await good(sub)
    const spend = Array.from({ length: 101 }, (_, sent) =>
      statusOf(sent % 2 === 0 ? here : there, token, newAddress()),
    )
    await Promise.all(spend)
    // Refusals from an isolate's cache count once in five seconds.
    await vi.waitFor(
      async () => {
        const statuses = [
          await statusOf(here, token, newAddress()),
          await statusOf(there, token, newAddress()),
        ]
        expect(statuses).toEqual([403, 403])
      },
      { timeout: 50_000, interval: 1_000 },
    )
    await expectBanned(there, await good(sub), newAddress())
    const ban = await banOf(sub)
    expect(ban).toMatchObject({ kind: 'subject', issuer: ISSUER, createdBy: 'portcullis' })
    expect((await admin('DELETE', `/bans/${ban?.id}`)).status).toBe(204)
  })

  test('neither expired tokens nor requests from loopback cause a ban', async () => {
    const address = newAddress()
    const past = Math.floor(Date.now() / 1000) - 600
    for (let sent = 0; sent < 2 * VIOLATIONS; sent++) {
      const expired = await mint(stack.inlineKey, { claims: { iat: past - 60, exp: past } })
      expect(await statusOf(here, expired, address)).toBe(401)
    }
    await expectStatus(200, here, await good(), address)
    for (let sent = 0; sent < LIMIT + VIOLATIONS; sent++)
      expect(await statusOf(here, forgery())).toBe(401)
    await expectStatus(200, here, await good())
    const keys = await redis.names(`pc:violations:address:*${groupOf(address).slice(0, 14)}*`)
    expect(keys).toEqual([])
    expect(await banOf('127.0.0.1')).toBeUndefined()
  })

  test('a ban costs other callers no extra round trip', async () => {
    const address = newAddress()
    const alice = await good()
    await expectStatus(200, here, alice, address)
    const callsOf = async () => {
      await forget(stack.rest)
      const status = await statusOf(here, alice, address)
      return [status, await callsOfRequests(stack.rest)]
    }
    await vi.waitFor(async () => expect(await callsOf()).toEqual([200, 1]), PATIENCE)
    const { id } = await earnBan(address)
    await vi.waitFor(async () => expect(await callsOf()).toEqual([403, 1]), PATIENCE)
    expect((await admin('DELETE', `/bans/${id}`)).status).toBe(204)
    await vi.waitFor(async () => expect(await callsOf()).toEqual([200, 1]), PATIENCE)
  })
})

/** Returns the milliseconds until `another` is answered with 200, or NaN. */
async function waitOf(another: Promise<Response>): Promise<number> {
  const startMs = performance.now()
  const response = await another
  await response.arrayBuffer()
  return response.status === 200 ? performance.now() - startMs : Number.NaN
}

test(
  'in a flood of bad tokens from one address few are verified, and other callers are served [S44, R18]',
  async () => {
    const address = newAddress()
    const counts = new Map<number, number>()
    const waits = { alone: [] as number[], ordinary: [] as number[], flood: [] as number[] }
    const isMeasured = process.env.FLOOD !== undefined
    const others = () =>
      Promise.all(
        Array.from({ length: OTHERS }, async () => waitOf(send(here, await good(), newAddress()))),
      )
    for (let sent = 0; sent < FLOOD; sent += AT_ONCE) {
      const batch = Array.from({ length: AT_ONCE }, async () => {
        const status = await statusOf(here, forgery(), address)
        counts.set(status, (counts.get(status) ?? 0) + 1)
      })
      waits.flood.push(...(await others()))
      await Promise.all(batch)
      if (!isMeasured) continue
      waits.alone.push(...(await others()))
      const token = await good()
      const ordinary = Array.from({ length: AT_ONCE }, () => statusOf(here, token, newAddress()))
      waits.ordinary.push(...(await others()))
      await Promise.all(ordinary)
    }
    await vi.waitFor(async () => expectBanned(here, forgery(), address), PATIENCE)
    await vi.waitFor(async () => expectBanned(there, await good(), address), PATIENCE)
    // 429 after twenty failures, while the ban is not cached yet.
    expect([...counts.keys()].filter((status) => ![401, 403, 429].includes(status))).toEqual([])
    expect(counts.get(401)).toBeGreaterThanOrEqual(VIOLATIONS)
    expect(counts.get(401)).toBeLessThan(LIMIT + MIN_CHECKS_AT_ONCE)
    expect(waits.flood.filter(Number.isNaN)).toEqual([])
    expect((await recordsOf(stack.origin)).length).toBeGreaterThanOrEqual(waits.flood.length)
    if (isMeasured) report(counts, waits)
  },
  FLOOD_TIMEOUT_MS,
)

/**
 * Prints how long other callers wait beside a flood, beside as many valid requests, and alone, in
 * the same run.
 */
function report(counts: Map<number, number>, waits: Readonly<Record<string, number[]>>): void {
  const rows = Object.entries(waits).map(([beside, all]) => {
    const sorted = all.filter((wait) => !Number.isNaN(wait)).sort((a, b) => a - b)
    const at = (share: number) => sorted[Math.ceil(share * sorted.length) - 1]?.toFixed(1)
    return { beside, requests: sorted.length, 'p50 ms': at(0.5), 'p99 ms': at(0.99) }
  })
  console.table(rows)
  console.table([Object.fromEntries(counts)])
}

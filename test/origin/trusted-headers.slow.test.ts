import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createOrigin } from '../../src/origin/origin.ts'
import { definePolicy } from '../../src/policy/policy.ts'
import {
  allOf,
  ORDINARY_HEADERS,
  spellingsOf,
  TRUSTED_HEADERS,
} from '../middleware/header-names.ts'
import { startGateway } from '../rows/gateway.ts'
import { headersOf, startHttpOrigin } from './origin-server.ts'
import { RUNTIMES, startForwarding } from './runtimes.ts'
import { exchange } from './wire.ts'

/** Node accepts 16 KB of headers. */
const LINES_PER_REQUEST = 200

let origin: Awaited<ReturnType<typeof startHttpOrigin>>
let originUrl: string
const gateways = new Map<string, { port: number; stop: () => Promise<void> }>()

beforeAll(async () => {
  origin = await startHttpOrigin((_request, response) => response.end())
  originUrl = `http://127.0.0.1:${origin.port}`
  for (const runtime of RUNTIMES)
    gateways.set(runtime.name, await startForwarding(runtime, originUrl))
})
beforeEach(() => {
  origin.requests.length = 0
})
afterAll(() => Promise.all([...gateways.values(), { stop: origin.close }].map((it) => it.stop())))

const chunksOf = (lines: readonly string[]) =>
  Array.from({ length: Math.ceil(lines.length / LINES_PER_REQUEST) }, (_, at) =>
    lines.slice(at * LINES_PER_REQUEST, (at + 1) * LINES_PER_REQUEST),
  )

async function send(runtime: string, lines: readonly string[]): Promise<number> {
  const head = ['GET /orders HTTP/1.1', 'Host: gateway.test', ...lines].join('\r\n')
  return (await exchange(gateways.get(runtime)?.port ?? 0, `${head}\r\n\r\n`)).status
}

/** Every header of every request that reached the origin. */
const arrived = () => origin.requests.flatMap(headersOf)

describe.each(RUNTIMES)('trusted names on $name', ({ name: runtime }) => {
  test.each(Object.entries(TRUSTED_HEADERS))(
    'no name of %s arrives, in any spelling [S73]',
    async (_topic, names) => {
      const chunks = chunksOf(names.flatMap(spellingsOf).map((name) => `${name}: forged`))
      for (const lines of chunks) expect(await send(runtime, lines)).toBe(200)
      expect(origin.requests).toHaveLength(chunks.length)
      expect(arrived().filter(([, value]) => value.includes('forged'))).toEqual([])
    },
  )

  test.each([
    'X Auth Subject: forged',
    'X-User Id: forged',
    'X-User-Id : forged',
    '\tX-User-Id: forged',
  ])('%j is refused or does not arrive [S73]', async (line) => {
    const status = await send(runtime, ['Accept: */*', line])
    expect(origin.requests).toHaveLength(status === 200 ? 1 : 0)
    expect(JSON.stringify(arrived())).not.toContain('forged')
  })

  test('ordinary names arrive with their values [S73]', async () => {
    const names = allOf(ORDINARY_HEADERS)
    for (const lines of chunksOf(names.map((name) => `${name}: value of ${name}`)))
      expect(await send(runtime, lines)).toBe(200)
    const values = new Set(arrived().map(([name, value]) => `${name}: ${value}`))
    const lost = names.filter((name) => !values.has(`${name.toLowerCase()}: value of ${name}`))
    expect(lost).toEqual([])
  })
})

test('a policy adds names to the removed ones, and keeps others [S73]', async () => {
  const gateway = await startGateway(
    definePolicy({
      roles: {},
      limits: {},
      routes: [{ method: 'GET', path: '/public', anonymous: true }],
      stripHeaders: ['X-Tenant-*', 'X-Session-Id', 'Http-Tenant'],
      keepHeaders: ['X-User-Id'],
    }),
    createOrigin({ url: originUrl }),
  )
  try {
    const headers = {
      'X-Tenant-Id': 'forged',
      'x-tenant-name': 'forged',
      'X-SESSION-ID': 'forged',
      'Grpc-Metadata-X-Tenant-Id': 'forged',
      'Grpcgateway-X-Session-Id': 'forged',
      'Http-Grpc-Metadata-X-Session-Id': 'forged',
      'Grpc-Metadata-Http-Tenant': 'forged',
      'X-User-Id': 'sent by the browser',
      'X-User-Email': 'forged',
      'X-Auth-Subject': 'forged',
      'X-Tenant': 'ordinary',
    }
    expect(await gateway.send({ path: '/public', headers })).toBe(200)
    const identity = arrived().filter(([name]) => /tenant|session|user-(?!agent)|auth/.test(name))
    expect(Object.fromEntries(identity)).toEqual({
      'x-user-id': 'sent by the browser',
      'x-tenant': 'ordinary',
    })
  } finally {
    await gateway.close()
  }
})

/** The conformance suite of MCP, directly and through the gateway, and what its clients show of refusals. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  failuresIn,
  installSuite,
  REVISIONS,
  type Results,
  type Suite,
  worseThan,
} from '../../../dev/mcp-conformance/suite.ts'
import { startTokenFront } from '../../../dev/mcp-conformance/token-front.ts'
import { serve } from '../../../src/runtimes/node/index.ts'
import { RUNTIMES } from '../../harness/gateway.ts'
import { createKey, ISSUER, mint, type TestKey } from '../../harness/issuer.ts'
import { redisVars, startTestRedis, type TestRedis } from '../../harness/redis.ts'
import { startWorkerd } from '../../origin/workerd.ts'
import { policy } from './conformance/policy.ts'
import { startServer } from './conformance/server.ts'
import { installPython, PYTHON } from './python.ts'
import { SDKS } from './sdk-clients.ts'

/** The SDK answers with a result where the suite expects an error for a capability of the client. */
const OF_THE_SDK = [
  'FAILURE sep-2575-server-rejects-undeclared-capability',
  'FAILURE sep-2575-missing-capability-http-400',
]

let suite: Suite | undefined
let redis: TestRedis
let key: TestKey
let server: Awaited<ReturnType<typeof startServer>>
const direct = new Map<string, Results>()

beforeAll(async () => {
  suite = installSuite()
  key = await createKey('idp')
  redis = await startTestRedis()
  server = await startServer()
  for (const revision of REVISIONS)
    if (suite !== undefined) direct.set(revision, await suite.run(`${server.url}/mcp`, revision))
}, 400_000)
afterAll(async () => {
  suite?.remove()
  await server?.close()
  await redis?.close()
})

async function startOn(runtime: 'Node' | 'workerd') {
  const token = await mint(key, { claims: { sub: runtime, aud: ISSUER, roles: ['user'] } })
  const front = await startTokenFront(token)
  const vars = {
    PUBLIC_URL: front.url,
    ORIGIN_URL: server.url,
    SIGNING_KEYS: JSON.stringify({ keys: [key.privateJwk] }),
    ISSUERS: JSON.stringify([
      { issuer: ISSUER, audience: ISSUER, jwks: { keys: [key.publicJwk] } },
    ]),
  }
  if (runtime === 'workerd') {
    const entry = 'test/features/mcp/conformance/worker.ts'
    const { port, stop } = await startWorkerd({ entry, vars: { ...vars, ...redisVars(redis) } })
    front.to(`http://127.0.0.1:${port}`)
    return { url: `${front.url}/mcp`, close: () => stop().finally(front.close) }
  }
  // Otherwise events are written to the output.
  const env = {
    ...vars,
    REDIS_URL: redis.redisUrl,
    REDIS_TIMEOUT_MS: '5000',
    AUDIT_STREAM: 'redis',
  }
  const gateway = await serve({ policy, port: 0, graceMs: 100, env })
  front.to(gateway.url)
  return { url: `${front.url}/mcp`, close: () => gateway.close().finally(front.close) }
}

describe.each(RUNTIMES)('the gateway on %s', (runtime) => {
  let gateway: Awaited<ReturnType<typeof startOn>>
  beforeAll(async () => {
    gateway = await startOn(runtime)
  })
  afterAll(() => gateway?.close())

  test.each(REVISIONS)(
    'passes each check of the set %s that passes directly',
    async (revision) => {
      if (suite === undefined) return
      const before = direct.get(revision) ?? new Map<string, never>()
      const [scenario, expected] =
        revision === REVISIONS[0] ? ['server-initialize', []] : ['server-stateless', OF_THE_SDK]
      // Otherwise this test shows nothing.
      expect(failuresIn(before.get(scenario) ?? [])).toEqual(expected)
      expect(before.get(scenario)?.length).toBeGreaterThan(0)
      expect(worseThan(before, await suite.run(gateway.url, revision))).toEqual([])
    },
    150_000,
  )
})

/** What a refused call must say, by its tool. */
const REASONS = {
  forbidden: 'This request needs the permission mcp:admin.',
  strict: '/params/arguments/count: ',
  limited: 'The limit "once" is exhausted. Try again in ',
}

describe('the reason of a refusal (403, 422, 429) reaches the model', () => {
  let gateway: Awaited<ReturnType<typeof startOn>>
  beforeAll(async () => {
    gateway = await startOn('Node')
  })
  afterAll(() => gateway?.close())

  test.each(Object.entries(SDKS))('with %s', async (_, { Client, Transport }) => {
    const client = new Client({ name: 'test', version: '1.0.0' })
    await client.connect(new Transport(new URL(gateway.url), {}))
    const call = async (name: string) => {
      try {
        await client.callTool({ name, arguments: name === 'strict' ? { count: 'two' } : {} })
        return 'no refusal'
      } catch (error) {
        return (error as Error).message.replaceAll('\\"', '"')
      }
    }
    await call('limited')
    for (const [name, reason] of Object.entries(REASONS)) expect(await call(name)).toContain(reason)
    await client.close()
  })

  test(`with ${PYTHON}`, async (context) => {
    const python = await installPython()
    if (python === undefined) return context.skip('pip cannot install the client')
    const script = join(import.meta.dirname, 'conformance/reasons.py')
    const { stdout } = await promisify(execFile)(python.interpreter, [script, gateway.url])
    const shown = JSON.parse(stdout) as Record<keyof typeof REASONS, string>
    for (const [name, reason] of Object.entries(REASONS))
      expect(shown[name as keyof typeof REASONS]).toContain(reason)
  }, 200_000)
})

/** Gateway processes on Node that share a stream and a database; some of them are killed. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest'
import { verifyChain } from '../../cli/verify.ts'
import { createChainLog } from '../../src/audit/d1/chain-log.ts'
import { chainQuerySchema } from '../../src/audit/log.ts'
import { databaseOver } from '../../src/node/audit/database.ts'
import { openSqlite, type Sqlite } from '../../src/node/audit/sqlite.ts'
import { DEFAULT_KEYS } from '../../src/redis/keys.ts'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import { AUDIENCE, createKey, ISSUER, mint } from '../harness/issuer.ts'
import { ROOT, type Running, run } from '../harness/process.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'
import { directTo, hasRedisServer, startRealServer } from '../harness/resp-server.ts'

const NODE = `${ROOT}/node_modules/node/bin/node`
/** Longer than a consumer needs to take over the entries of another one. */
const PATIENCE = { timeout: 50_000, interval: 200 }

let redis: TestRedis
let origin: TestServer
let folder: string
let environment: Record<string, string>
let token: string
const started: Running[] = []

beforeEach(async () => {
  redis = await startTestRedis()
  await redis.direct.flushall()
  origin = await startHttpServer((_, response) => response.end('[]'))
  folder = await mkdtemp(join(tmpdir(), 'portcullis-process-'))
  const key = await createKey('idp')
  token = await mint(key, {})
  environment = {
    REDIS_URL: redis.redisUrl,
    REDIS_TIMEOUT_MS: '5000',
    PUBLIC_URL: 'https://gateway.test',
    ORIGIN_URL: origin.url,
    ISSUERS: JSON.stringify([
      { issuer: ISSUER, audience: AUDIENCE, jwks: { keys: [key.publicJwk] } },
    ]),
    AUDIT_DATABASE: `sqlite:${join(folder, 'audit.db')}`,
  }
})
afterEach(async () => {
  await Promise.all(started.splice(0).map((running) => running.stop()))
  await origin.close()
  await redis.close()
  await rm(folder, { recursive: true })
})

async function startGateway(variables: Readonly<Record<string, string>> = {}) {
  const command = [NODE, 'test/node/process.ts'] as const
  const running = await run(command, { ...environment, ...variables }, /ready on \S+\n/)
  started.push(running)
  return { running, url: /ready on (\S+)/.exec(running.output())?.[1] ?? '' }
}

/** Sends a request, and returns its id, or undefined if the connection was cut. */
async function request(url: string): Promise<string | undefined> {
  try {
    const response = await fetch(`${url}/orders`, { headers: { authorization: `Bearer ${token}` } })
    expect(response.status).toBe(200)
    return response.headers.get('x-request-id') ?? undefined
  } catch (error) {
    if (error instanceof TypeError) return undefined
    throw error
  }
}

function withDatabase<Value>(work: (sqlite: Sqlite) => Value): Value {
  const sqlite = openSqlite(join(folder, 'audit.db'))
  try {
    return work(sqlite)
  } finally {
    sqlite.close()
  }
}

const storedRequests = (): readonly string[] =>
  withDatabase((sqlite) => {
    const [found] = sqlite.run([{ sql: 'SELECT request_id AS id FROM audit_events', values: [] }])
    return ((found?.results ?? []) as { id: string }[]).map(({ id }) => id)
  })

async function verdict() {
  const sqlite = openSqlite(join(folder, 'audit.db'))
  const chain = createChainLog(databaseOver(async (statements) => sqlite.run(statements)))
  try {
    return await verifyChain(
      async (after) => (await chain.read(chainQuerySchema.parse({ after: `${after}` }))) as never,
      undefined,
    )
  } finally {
    sqlite.close()
  }
}

test('R35: after SIGKILL of one of two processes under load, the event of each response is stored once', async () => {
  const [doomed, survivor] = [await startGateway(), await startGateway()]
  const answered: string[] = []
  let isKilled = false
  let after = 0
  async function client(url: string) {
    while (after < 300) {
      const id = await request(url)
      if (id === undefined) return
      answered.push(id)
      if (isKilled) after += 1
      if (answered.length === 1_000) {
        isKilled = true
        doomed.running.child.kill('SIGKILL')
      }
    }
  }
  const urls = Array.from({ length: 32 }, (_, index) => (index % 2 ? doomed : survivor).url)
  await Promise.all(urls.map(client))
  expect(answered.length).toBeGreaterThanOrEqual(1_000)
  await expect
    .poll(() => {
      const stored = new Set(storedRequests())
      return answered.filter((id) => !stored.has(id)).length
    }, PATIENCE)
    .toBe(0)
  const stored = storedRequests()
  expect(stored).toHaveLength(new Set(stored).size)
  expect(await verdict()).toMatchObject({ ok: true })
  await expect.poll(() => redis.direct.xlen(DEFAULT_KEYS.auditStream), PATIENCE).toBe(0)
})

test('R36: a process that ends with SIGTERM has stored the events of all its responses', async () => {
  const gateway = await startGateway()
  const ids = await Promise.all(Array.from({ length: 40 }, () => request(gateway.url)))
  expect(await gateway.running.stop()).toBe(0)
  expect(storedRequests().toSorted()).toEqual(ids.toSorted())
  expect(await verdict()).toMatchObject({ ok: true, events: 40 })
})

/** Requests of which the database has no event. */
function missing(ids: readonly (string | undefined)[]): number {
  const stored = new Set(storedRequests())
  return ids.filter((id) => id === undefined || !stored.has(id)).length
}

test('R38: while the database is locked, requests go on; a consumer that is killed loses nothing', async () => {
  const doomed = await startGateway()
  const first = await request(doomed.url)
  await expect.poll(() => missing([first]), PATIENCE).toBe(0)
  const lock = new DatabaseSync(join(folder, 'audit.db'))
  lock.exec('BEGIN IMMEDIATE')
  const ids = await Promise.all(Array.from({ length: 50 }, () => request(doomed.url)))
  // The consumer has read them and waits for the lock.
  const delivered = async () => (await redis.direct.xpending(DEFAULT_KEYS.auditStream, 'audit'))[0]
  await expect.poll(delivered, PATIENCE).toBe(50)
  ids.push(await request(doomed.url))
  doomed.running.child.kill('SIGKILL')
  lock.close()
  await startGateway()
  await expect.poll(() => missing(ids), PATIENCE).toBe(0)
  expect(storedRequests()).toHaveLength(52)
  expect(await verdict()).toMatchObject({ ok: true, events: 52 })
})

test('R38: an event is not stored without a database, waits in Redis, and is stored by another process', async () => {
  const { AUDIT_DATABASE, ...others } = environment
  environment = { ...others, AUDIT_STREAM: 'redis' }
  const sender = await startGateway()
  const ids = await Promise.all(Array.from({ length: 20 }, () => request(sender.url)))
  expect(await redis.direct.xlen(DEFAULT_KEYS.auditStream)).toBe(20)
  await startGateway({ AUDIT_DATABASE: AUDIT_DATABASE ?? '' })
  await expect.poll(() => redis.direct.xlen(DEFAULT_KEYS.auditStream), PATIENCE).toBe(0)
  expect(missing(ids)).toBe(0)
})

test.skipIf(!hasRedisServer)(
  'R38: Redis is killed and starts again: no event of a response is lost',
  async () => {
    const options = ['--appendonly', 'yes', '--dir', folder]
    const first = await startRealServer(options)
    onTestFinished(() => first.close())
    environment.REDIS_URL = `redis://127.0.0.1:${first.port}`
    const gateway = await startGateway()
    const ids = await Promise.all(Array.from({ length: 40 }, () => request(gateway.url)))
    await first.close()
    const second = await startRealServer(options, first.port)
    onTestFinished(() => second.close())
    await expect.poll(() => missing(ids), PATIENCE).toBe(0)
    await expect
      .poll(async () => {
        const response = await fetch(`${gateway.url}/orders`, {
          headers: { authorization: `Bearer ${token}` },
        })
        return response.status
      }, PATIENCE)
      .toBe(200)
    const later = await request(gateway.url)
    await expect.poll(() => missing([later]), PATIENCE).toBe(0)
    expect(await verdict()).toMatchObject({ ok: true })
  },
)

test.skipIf(!hasRedisServer)(
  'R38: while Redis is full, requests are answered, and each event is stored later or counted as lost',
  async () => {
    const server = await startRealServer(['--maxmemory-policy', 'noeviction'])
    onTestFinished(() => server.close())
    environment.REDIS_URL = `redis://127.0.0.1:${server.port}`
    const gateway = await startGateway()
    const before = await request(gateway.url)
    await expect.poll(() => missing([before]), PATIENCE).toBe(0)
    const direct = directTo(server.port)
    onTestFinished(() => direct.disconnect())
    await direct.config('SET', 'maxmemory', '1')
    const ids = await Promise.all(Array.from({ length: 30 }, () => request(gateway.url)))
    expect(ids.every((id) => id !== undefined)).toBe(true)
    await direct.config('SET', 'maxmemory', '0')
    const lost = () =>
      withDatabase((sqlite) => {
        const sql = 'SELECT coalesce(sum(lost), 0) AS lost FROM audit_events'
        const rows = sqlite.run([{ sql, values: [] }]).flatMap(({ results }) => results)
        return (rows as { lost: number }[])[0]?.lost
      })
    // A later batch finds that the queue works again.
    await expect
      .poll(async () => {
        await request(gateway.url)
        return missing(ids) - (lost() ?? 0)
      }, PATIENCE)
      .toBe(0)
  },
)

/** Gateway processes on Node that share a stream and a database; some of them are killed. */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest'
import { DEFAULT_KEYS } from '../../src/redis/keys.ts'
import { connectedStatus } from '../harness/connected.ts'
import { testInLong } from '../harness/long.ts'
import { directTo, hasRedisServer, startRealServer } from '../harness/resp-server.ts'
import { type Gateways, prepareGateways } from './gateways.ts'
import { storedEvents } from './stored.ts'

/** Longer than a consumer needs to take over the entries of another one. */
const PATIENCE = { timeout: 100_000, interval: 200 }

let gateways: Gateways
beforeEach(async () => {
  gateways = await prepareGateways()
})
afterEach(() => gateways.close())

test('after SIGKILL of one of two processes under load, the event of each response is stored once [R35]', async () => {
  const [doomed, survivor] = [await gateways.start(), await gateways.start()]
  const answered: string[] = []
  let isKilled = false
  let after = 0
  async function client(url: string) {
    while (after < 300) {
      const id = await gateways.request(url)
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
  await expect.poll(() => gateways.missing(answered), PATIENCE).toBe(0)
  const stored = await gateways.storedRequests()
  expect(stored).toHaveLength(new Set(stored).size)
  expect(await gateways.verdict()).toMatchObject({ ok: true })
  await expect.poll(() => gateways.redis.direct.xlen(DEFAULT_KEYS.auditStream), PATIENCE).toBe(0)
})

test('a process that ends with SIGTERM has stored the events of all its responses [R36]', async () => {
  const gateway = await gateways.start()
  const ids = await Promise.all(Array.from({ length: 40 }, () => gateways.request(gateway.url)))
  expect(await gateway.running.stop()).toBe(0)
  expect((await gateways.storedRequests()).toSorted()).toEqual(ids.toSorted())
  expect(await gateways.verdict()).toMatchObject({ ok: true, events: 40 })
})

test('while the database is locked, requests go on; a consumer that is killed loses nothing [R38]', async () => {
  const doomed = await gateways.start()
  const first = await gateways.request(doomed.url)
  await expect.poll(() => gateways.missing([first]), PATIENCE).toBe(0)
  const lock = new DatabaseSync(join(gateways.folder, 'audit.db'))
  lock.exec('BEGIN IMMEDIATE')
  const ids = await Promise.all(Array.from({ length: 50 }, () => gateways.request(doomed.url)))
  // The consumer has read some of them, or all, and waits for the lock.
  const delivered = async () =>
    (await gateways.redis.direct.xpending(DEFAULT_KEYS.auditStream, 'audit'))[0]
  await expect.poll(delivered, PATIENCE).toBeGreaterThan(0)
  ids.push(await gateways.request(doomed.url))
  doomed.running.child.kill('SIGKILL')
  lock.close()
  await gateways.start()
  await expect.poll(() => gateways.missing(ids), PATIENCE).toBe(0)
  expect(await gateways.storedRequests()).toHaveLength(52)
  expect(await gateways.verdict()).toMatchObject({ ok: true, events: 52 })
})

testInLong(
  'an event is not stored without a database, waits in Redis, and is stored by another process [R38]',
  async () => {
    const { AUDIT_DATABASE, ...others } = gateways.environment
    gateways.environment = { ...others, AUDIT_STREAM: 'redis' }
    const sender = await gateways.start()
    const ids = await Promise.all(Array.from({ length: 20 }, () => gateways.request(sender.url)))
    expect(await gateways.redis.direct.xlen(DEFAULT_KEYS.auditStream)).toBe(20)
    await gateways.start({ AUDIT_DATABASE: AUDIT_DATABASE ?? '' })
    await expect.poll(() => gateways.redis.direct.xlen(DEFAULT_KEYS.auditStream), PATIENCE).toBe(0)
    expect(await gateways.missing(ids)).toBe(0)
  },
)

test.skipIf(!hasRedisServer)(
  'Redis is killed and starts again: no event of a response is lost [R38]',
  async () => {
    const options = ['--appendonly', 'yes', '--dir', gateways.folder]
    const first = await startRealServer(options)
    onTestFinished(() => first.close())
    gateways.environment.REDIS_URL = `redis://127.0.0.1:${first.port}`
    const gateway = await gateways.start()
    const ids = await Promise.all(Array.from({ length: 40 }, () => gateways.request(gateway.url)))
    await first.close()
    const second = await startRealServer(options, first.port)
    onTestFinished(() => second.close())
    await expect.poll(() => gateways.missing(ids), PATIENCE).toBe(0)
    expect(await connectedStatus(() => gateways.status(gateway.url))).toBe(200)
    const later = await gateways.request(gateway.url)
    await expect.poll(() => gateways.missing([later]), PATIENCE).toBe(0)
    expect(await gateways.verdict()).toMatchObject({ ok: true })
  },
)

test.skipIf(!hasRedisServer)(
  'while Redis is full, requests are answered, and each event is stored later or counted as lost [R38]',
  async () => {
    const server = await startRealServer(['--maxmemory-policy', 'noeviction'])
    onTestFinished(() => server.close())
    gateways.environment.REDIS_URL = `redis://127.0.0.1:${server.port}`
    const gateway = await gateways.start()
    const before = await gateways.request(gateway.url)
    await expect.poll(() => gateways.missing([before]), PATIENCE).toBe(0)
    const direct = directTo(server.port)
    onTestFinished(() => direct.disconnect())
    await direct.config('SET', 'maxmemory', '1')
    const ids = await Promise.all(Array.from({ length: 30 }, () => gateways.request(gateway.url)))
    expect(ids.every((id) => id !== undefined)).toBe(true)
    await direct.config('SET', 'maxmemory', '0')
    const lost = () =>
      gateways.withDatabase(async (db) =>
        (await storedEvents(db)).reduce((sum, { lost = 0 }) => sum + lost, 0),
      )
    // A later batch finds that the queue works again.
    await expect
      .poll(async () => {
        await gateways.request(gateway.url)
        return (await gateways.missing(ids)) - (await lost())
      }, PATIENCE)
      .toBe(0)
  },
)

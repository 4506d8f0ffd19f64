/** Gateway processes on Node with a spool, and a Redis that is killed and started again. */
import { existsSync, statSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { DEFAULT_KEYS } from '../../../src/redis/keys.ts'
import { connectedStatus } from '../../harness/connected.ts'
import {
  directTo,
  hasRedisServer,
  type RealServer,
  startRealServer,
} from '../../harness/resp-server.ts'
import { type Gateways, prepareGateways } from '../gateways.ts'

/** Longer than a consumer needs to take over the entries of another one. */
const PATIENCE = { timeout: 100_000, interval: 200 }

let gateways: Gateways
beforeEach(async () => {
  gateways = await prepareGateways()
  gateways.environment.REDIS_TIMEOUT_MS = '250'
  gateways.environment.METRICS_ACCESS = 'public'
})
afterEach(() => gateways.close())

const spool = () => join(gateways.folder, 'audit.db.spool')
const startRedis = async (port?: number): Promise<RealServer> => {
  const options = ['--appendonly', 'yes', '--dir', gateways.folder]
  const server = await startRealServer(options, port)
  onTestFinished(() => server.close())
  gateways.environment.REDIS_URL = `redis://127.0.0.1:${server.port}`
  return server
}

/** Returns the ids of the requests whose events are in the spool, in its order. */
function spooled(): readonly string[] {
  const db = new DatabaseSync(join(spool(), 'events.db'), { readOnly: true })
  try {
    const rows = db.prepare('SELECT event FROM events ORDER BY seq').all()
    return rows.map(({ event }) => JSON.parse(String(event)).requestId)
  } finally {
    db.close()
  }
}

/** Sends requests until one has found Redis, which must admit it. */
const admitted = async (url: string) =>
  expect(await connectedStatus(() => gateways.status(url))).toBe(200)

const refused = async (url: string, count: number) => {
  const ids: string[] = []
  while (ids.length < count) ids.push(await gateways.answered(url))
  return ids
}

/** Returns the number of spooled events in the metrics. */
async function spooledMetric(url: string | undefined): Promise<number> {
  const text = await (await fetch(`${url}/-/metrics`)).text()
  return Number(/^portcullis_audit_events_total\{outcome="spooled"\} (\d+)$/m.exec(text)?.[1])
}

/** A later request drains the overflow in Redis, which has what waited in memory. */
async function missingAfterRequest(url: string, ids: readonly string[]): Promise<number> {
  await gateways.answered(url)
  return gateways.missing(ids)
}

/** Returns those of the stored requests that are in `ids`, in the order of the chain. */
async function storedOf(ids: readonly string[]): Promise<readonly string[]> {
  const wanted = new Set(ids)
  return (await gateways.storedRequests()).filter((id) => wanted.has(id))
}

describe.skipIf(!hasRedisServer)('while Redis is down', () => {
  test('the event of each response survives SIGKILL, and the next process stores all, once, in order [R38]', async () => {
    const redis = await startRedis()
    const doomed = await gateways.start()
    await admitted(doomed.url)
    await expect.poll(spooled, PATIENCE).toEqual([])
    await redis.close()
    const ids = await refused(doomed.url, 150)
    doomed.running.child.kill('SIGKILL')
    expect(spooled()).toEqual(ids)
    await startRedis(redis.port)
    await gateways.start()
    await expect.poll(() => gateways.missing(ids), PATIENCE).toBe(0)
    expect(await storedOf(ids)).toEqual(ids)
    expect(await gateways.verdict()).toMatchObject({ ok: true })
    // A page leaves the spool after it is stored.
    await expect.poll(spooled, PATIENCE).toEqual([])
  })

  test('a process that ends with SIGTERM leaves its events to the next one [R36]', async () => {
    const redis = await startRedis()
    const first = await gateways.start()
    await admitted(first.url)
    await expect.poll(spooled, PATIENCE).toEqual([])
    await redis.close()
    const ids = await refused(first.url, 30)
    expect(await first.running.stop()).toBe(0)
    expect(spooled()).toEqual(ids)
    await startRedis(redis.port)
    await gateways.start()
    await expect.poll(() => gateways.missing(ids), PATIENCE).toBe(0)
    expect(await storedOf(ids)).toEqual(ids)
  })

  test('several processes share a spool; the survivors send what a killed one left, each event once [R38]', async () => {
    const redis = await startRedis()
    const started = [await gateways.start(), await gateways.start(), await gateways.start()]
    await redis.close()
    const ids = (await Promise.all(started.map(({ url }) => refused(url, 100)))).flat()
    started[0]?.running.child.kill('SIGKILL')
    expect(spooled().toSorted()).toEqual(ids.toSorted())
    await startRedis(redis.port)
    await expect.poll(() => gateways.missing(ids), PATIENCE).toBe(0)
    expect((await storedOf(ids)).toSorted()).toEqual(ids.toSorted())
    await expect.poll(spooled, PATIENCE).toEqual([])
    expect(await gateways.verdict()).toMatchObject({ ok: true })
    // The counts of the killed process died with it.
    await expect.poll(() => spooledMetric(started[1]?.url), PATIENCE).toBeGreaterThanOrEqual(200)
  })

  test('of several processes without a database, one at a time sends the spool: each event once, in order [R38]', async () => {
    const redis = await startRedis()
    const { AUDIT_DATABASE: _, ...others } = gateways.environment
    gateways.environment = { ...others, AUDIT_STREAM: 'redis', AUDIT_SPOOL: spool() }
    const started = [await gateways.start(), await gateways.start(), await gateways.start()]
    await redis.close()
    await Promise.all(started.map(({ url }) => refused(url, 200)))
    const ids = spooled()
    expect(ids).toHaveLength(600)
    await startRedis(redis.port)
    await expect.poll(spooled, PATIENCE).toEqual([])
    const direct = directTo(redis.port)
    onTestFinished(() => direct.disconnect())
    const entries = await direct.xrange(DEFAULT_KEYS.auditStream, '-', '+')
    expect(entries.map(([, [, event]]) => JSON.parse(event ?? '').requestId)).toEqual(ids)
  })

  test('while Redis hangs, the event of each response survives SIGKILL [R38]', async () => {
    const redis = await startRedis()
    const doomed = await gateways.start()
    await admitted(doomed.url)
    redis.process.kill('SIGSTOP')
    const ids = await refused(doomed.url, 20)
    doomed.running.child.kill('SIGKILL')
    expect(spooled()).toEqual(expect.arrayContaining(ids))
    redis.process.kill('SIGCONT')
    await gateways.start()
    await expect.poll(() => gateways.missing(ids), PATIENCE).toBe(0)
    expect((await storedOf(ids)).toSorted()).toEqual(ids.toSorted())
  })

  test('with a full spool, events wait in memory as well, and each is stored [R38]', async () => {
    const redis = await startRedis()
    const gateway = await gateways.start({ AUDIT_SPOOL_MAX_MIB: '1' })
    await admitted(gateway.url)
    await redis.close()
    const ids: string[] = []
    while (!gateway.running.output().includes('disk is full'))
      ids.push(...(await refused(gateway.url, 100)))
    expect(ids).not.toContain('')
    expect(statSync(join(spool(), 'events.db')).size).toBeLessThanOrEqual(1_048_576)
    await startRedis(redis.port)
    await expect.poll(() => missingAfterRequest(gateway.url, ids), PATIENCE).toBe(0)
    expect((await storedOf(ids)).toSorted()).toEqual(ids.toSorted())
  })

  test('with an unusable spool, requests are answered, and events wait in memory until it is usable [R38]', async () => {
    const place = join(gateways.folder, 'place')
    writeFileSync(place, '')
    const redis = await startRedis()
    const gateway = await gateways.start({ AUDIT_SPOOL: place })
    await redis.close()
    const ids = await refused(gateway.url, 30)
    expect(ids).not.toContain('')
    expect(gateway.running.output()).toMatch(/the spool \S+ stores no events \(EEXIST/)
    await rm(place)
    await expect
      .poll(async () => {
        ids.push(...(await refused(gateway.url, 1)))
        return existsSync(place)
      }, PATIENCE)
      .toBe(true)
    await startRedis(redis.port)
    await expect.poll(() => missingAfterRequest(gateway.url, ids), PATIENCE).toBe(0)
    expect((await storedOf(ids)).toSorted()).toEqual(ids.toSorted())
  })
})

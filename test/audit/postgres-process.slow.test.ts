/** Gateway processes on Node that share a database of PostgreSQL, which fails. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { DEFAULT_KEYS } from '../../src/redis/keys.ts'
import { hasPostgres, type PostgresServer, startPostgres } from '../harness/postgres.ts'
import { type Gateways, prepareGateways } from './gateways.ts'

/** Longer than a consumer needs to take over the entries of another one. */
const PATIENCE = { timeout: 100_000, interval: 200 }

describe.skipIf(!hasPostgres)('gateways with PostgreSQL [R38]', () => {
  let server: PostgresServer
  let gateways: Gateways
  beforeEach(async () => {
    server = await startPostgres()
    gateways = await prepareGateways(await server.database('audit'))
  })
  afterEach(async () => {
    await gateways?.close()
    await server?.close()
  })

  const waiting = () => gateways.redis.direct.xlen(DEFAULT_KEYS.auditStream)
  const ready = async (url: string) => (await fetch(`${url}/-/readyz`)).status

  test('answer while the server is down, and store each event once after it starts again; one gateway was killed', async () => {
    const [doomed, survivor] = await Promise.all([gateways.start(), gateways.start()])
    const ids: (string | undefined)[] = []
    const send = async (urls: readonly string[]) =>
      void ids.push(...(await Promise.all(urls.map((url) => gateways.request(url)))))
    const urls = Array.from({ length: 60 }, (_, index) => (index % 2 ? doomed : survivor).url)
    await send(urls)
    await server.crash()
    await send(urls)
    expect(await ready(survivor.url)).toBe(200)
    doomed.running.child.kill('SIGKILL')
    await send(urls.map(() => survivor.url))
    await server.start()
    await expect.poll(waiting, PATIENCE).toBe(0)
    expect(ids).toHaveLength(180)
    expect((await gateways.storedRequests()).toSorted()).toEqual(ids.toSorted())
    expect(await gateways.verdict()).toMatchObject({ ok: true, events: 180 })
  })

  test('start while the server is down, and never print its password', async () => {
    await server.crash()
    const { running, url } = await gateways.start()
    const id = await gateways.request(url)
    await expect.poll(running.output).toContain('audit: the consumer failed')
    expect(running.output()).toContain('audit: the database is not reachable (ECONNREFUSED)')
    await server.start()
    await expect.poll(waiting, PATIENCE).toBe(0)
    expect(await gateways.storedRequests()).toEqual([id])
    const { password } = new URL(gateways.environment.AUDIT_DATABASE ?? '')
    expect(password).not.toBe('')
    expect(running.output()).not.toContain(password)
  })

  test('do not start with a wrong password, which is not printed', async () => {
    const url = new URL(gateways.environment.AUDIT_DATABASE ?? '')
    url.password = 'guessed-password'
    const error = await gateways.start({ AUDIT_DATABASE: url.href }).catch((cause: Error) => cause)
    expect(error).toBeInstanceOf(Error)
    expect(String(error)).toContain('AUDIT_DATABASE')
    expect(String(error)).toContain('password authentication failed for user "admin"')
    expect(String(error)).not.toContain('guessed-password')
  })
})

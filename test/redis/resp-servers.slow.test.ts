/** Real servers over RESP: TLS, ACL users, Sentinel, and servers that a gateway must not use. */
import { type ChildProcess, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Redis } from 'ioredis'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { createAdmission } from '../../src/access/admission/admission.ts'
import { createRedisAdmissionStore } from '../../src/access/admission/redis/store.ts'
import { createRevocations } from '../../src/access/revocation/redis/revocations.ts'
import { revokedTokenKey } from '../../src/access/revocation/revocation.ts'
import { Misconfigured, Unavailable } from '../../src/errors.ts'
import { DEFAULT_KEYS } from '../../src/redis/keys.ts'
import { connectResp, type RespOptions } from '../../src/runtimes/node/redis/resp.ts'
import { principal } from '../access/admission/callers.ts'
import { writeAuthority, writeCertificate } from '../harness/certificate.ts'
import { freePort, ROOT } from '../harness/process.ts'
import {
  bulk,
  directTo,
  hasRedisServer,
  startRealServer,
  startStubServer,
} from '../harness/resp-server.ts'

const caller = { ...principal(), tokenIdHash: 'revoked-token' }
const PASSWORD = 'p@ss:word/that?must#not-appear'
/** More than the fence and a deadline of one second. */
const DOWN_AFTER_MS = 2_000
const ENCODED = encodeURIComponent(PASSWORD)

const cleanups: (() => unknown)[] = []
let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'resp-'))
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }))
})
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

function clientOf(url: string, { timeoutMs = 5_000, ...options }: Partial<RespOptions> = {}) {
  const client = connectResp({ url, timeoutMs, ...options })
  cleanups.push(client.close)
  return { ...client, redis: client.connect({ timeoutMs }) }
}

async function server(...args: string[]) {
  const started = await startRealServer(['--dir', folder, ...args])
  cleanups.push(started.close)
  return started
}

const mistakesOf = async (url: string) => {
  const error = await clientOf(url)
    .check()
    .then(
      () => undefined,
      (error: unknown) => error,
    )
  return error instanceof Misconfigured ? error.mistakes : error
}
const outcomeOf = (call: Promise<unknown>) => call.catch((error: unknown) => error)

/** Uses each kind of admission: a limit, a revocation, and their scripts. */
async function admitAndRevoke(redis: ReturnType<typeof clientOf>['redis']) {
  const admission = createAdmission({ store: createRedisAdmissionStore(redis), now: Date.now })
  const rule = { name: 'test', limit: 3, windowSeconds: 60, onUnavailable: 'deny' } as const
  const admit = () =>
    admission.admit({
      principal: caller,
      address: '192.0.2.1',
      limits: [{ rule, key: 'k' }],
    })
  const before = await admit()
  await createRevocations(redis, Date.now).revokeToken({
    tokenIdHash: caller.tokenIdHash,
    untilSeconds: Date.now() / 1000 + 60,
  })
  return [before.denial, (await admit()).denial?.code]
}

describe.skipIf(!hasRedisServer)('a server that a gateway must not use', () => {
  test('a cluster is refused, and the message says why [R31]', async () => {
    const { port } = await server('--cluster-enabled', 'yes')
    expect(await mistakesOf(`redis://127.0.0.1:${port}`)).toEqual([
      'REDIS_URL: is a Redis Cluster; set redis+cluster://host:port',
    ])
    const { redis } = clientOf(`redis://127.0.0.1:${port}`)
    expect(await outcomeOf(redis.send([['PING']]))).toMatchObject({ fault: 'refused' })
  })

  test('a replica is refused, because its revocations may be old', async () => {
    const master = await server()
    const { port } = await server('--replicaof', '127.0.0.1', String(master.port))
    expect(await mistakesOf(`redis://127.0.0.1:${port}`)).toEqual([
      'REDIS_URL: is a replica; set the address of the master, or of its Sentinels',
    ])
  })

  test('a master that becomes a replica is used no longer than a second, although its socket stays open', async () => {
    const { port } = await server()
    const direct = directTo(port)
    cleanups.push(() => direct.disconnect())
    const { redis } = clientOf(`redis://127.0.0.1:${port}`)
    const read = () => redis.send([['GET', 'revoked']])
    expect(await read()).toEqual([{ result: null }])
    await direct.replicaof('127.0.0.1', 1)
    await expect.poll(() => outcomeOf(read())).toMatchObject({ fault: 'refused' })
    await direct.replicaof('NO', 'ONE')
    await expect.poll(() => outcomeOf(read())).toEqual([{ result: null }])
  })

  test('a master that becomes a replica after it refused the check of its role is found by the next one', async () => {
    const { port } = await server()
    const [direct, other] = [directTo(port), directTo(port)]
    cleanups.push(
      () => direct.disconnect(),
      () => other.disconnect(),
    )
    await other.ping()
    const { redis } = clientOf(`redis://127.0.0.1:${port}`)
    const read = async () => (await redis.send([['GET', 'revoked']]))[0]
    expect(await read()).toEqual({ result: null })
    await direct.config('SET', 'busy-reply-threshold', 1)
    const running = direct.eval('while true do end', 0).catch(String)
    const begun = performance.now()
    await expect.poll(read).toMatchObject({ error: expect.stringMatching(/^BUSY /) })
    // The role is checked at least once in this time.
    await expect
      .poll(async () => (await read()) && performance.now() - begun)
      .toBeGreaterThan(2_000)
    await other.script('KILL')
    expect(await running).toContain('Error')
    await direct.replicaof('127.0.0.1', 1)
    await expect.poll(() => outcomeOf(read())).toMatchObject({ fault: 'refused' })
  })

  test.each([
    [
      'OOM: its memory is full',
      async (direct: Redis) => {
        await direct.config('SET', 'maxmemory', '1')
      },
    ],
    [
      'MISCONF: it cannot store its data',
      async (direct: Redis, folder: string) => {
        await direct.config('SET', 'save', '3600 1')
        rmSync(folder, { recursive: true })
        await direct.bgsave()
        await expect.poll(() => direct.info('persistence')).toContain('rdb_last_bgsave_status:err')
      },
    ],
  ])('a refused write of a limit is logged once (%s)', async (reason, refuse) => {
    const log = vi.spyOn(console, 'error').mockImplementation(() => {})
    onTestFinished(() => log.mockRestore())
    const data = join(folder, 'data')
    mkdirSync(data)
    const { port } = await server('--dir', data)
    const direct = directTo(port)
    cleanups.push(() => direct.disconnect())
    const { redis } = clientOf(`redis://127.0.0.1:${port}`)
    const admission = createAdmission({ store: createRedisAdmissionStore(redis), now: Date.now })
    const rule = { name: 'test', limit: 3, windowSeconds: 60, onUnavailable: 'deny' } as const
    const limits = [{ rule, key: 'k' }]
    const admit = () =>
      outcomeOf(admission.admit({ principal: principal(), address: '192.0.2.1', limits }))
    expect(await admit()).toMatchObject({ denial: undefined })
    await refuse(direct, data)
    expect(await admit()).toMatchObject({ dependency: 'redis', fault: 'refused' })
    await expect.poll(async () => (await admit()) && log.mock.calls).not.toEqual([])
    expect(log.mock.calls).toEqual([[`redis: refuses commands (${reason}); requests may get 503`]])
  })

  test.each([
    ['6.0.16', ['REDIS_URL: is Redis 6.0.16; the oldest supported version is 6.2']],
    ['5.0.0', ['REDIS_URL: is Redis 5.0.0; the oldest supported version is 6.2']],
    ['6.2.0', undefined],
    ['10.0.0', undefined],
  ])('version %s', async (version, mistakes) => {
    const { url, close } = await startStubServer(() => {}, bulk(`redis_version:${version}\r\n`))
    cleanups.push(close)
    expect(await mistakesOf(url)).toEqual(mistakes)
  })

  // `replica` of Dragonfly, `active-replica` of KeyDB.
  test.each(['slave', 'replica', 'active-replica'])('role %s is refused', async (role) => {
    const { url, close } = await startStubServer(() => {}, bulk(`role:${role}\r\n`))
    cleanups.push(close)
    expect(await mistakesOf(url)).toEqual([
      'REDIS_URL: is a replica; set the address of the master, or of its Sentinels',
    ])
  })

  test('a wrong login or database is a mistake that does not contain the password [S16]', async () => {
    const { port } = await server('--requirepass', PASSWORD, '--databases', '2')
    const login = ['REDIS_URL: Redis refuses the user or the password']
    expect(await mistakesOf(`redis://127.0.0.1:${port}`)).toEqual(login)
    expect(await mistakesOf(`redis://:${ENCODED}x@127.0.0.1:${port}`)).toEqual(login)
    expect(await mistakesOf(`redis://nobody:${ENCODED}@127.0.0.1:${port}`)).toEqual(login)
    expect(await mistakesOf(`redis://:${ENCODED}@127.0.0.1:${port}/2`)).toEqual([
      'REDIS_URL: Redis has no database of this number',
    ])
    expect(await mistakesOf(`redis://:${ENCODED}@127.0.0.1:${port}/1`)).toBeUndefined()

    const { redis } = clientOf(`redis://:${ENCODED}x@127.0.0.1:${port}`)
    const refused = await outcomeOf(redis.send([['PING']]))
    expect(refused).toMatchObject({ dependency: 'redis', fault: 'refused' })
    expect((refused as Unavailable).message).toBe('redis: refused')
  })

  test('a database keeps its keys for itself', async () => {
    const { port } = await server()
    const [one, two] = [1, 2].map((n) => clientOf(`redis://127.0.0.1:${port}/${n}`).redis)
    await one?.send([['SET', 'a', 1]])
    expect(await two?.send([['GET', 'a']])).toEqual([{ result: null }])
  })

  test('a server that does not respond is no mistake of the configuration', async () => {
    expect(await mistakesOf('redis://127.0.0.1:1')).toBeUndefined()
  })
})

describe.skipIf(!hasRedisServer)('an ACL user', () => {
  test('with the documented rights admits, revokes and refuses', async () => {
    const { port } = await server()
    const direct = directTo(port)
    cleanups.push(() => direct.disconnect())
    const documented = /^ACL SETUSER gateway (.*)$/m.exec(
      await readFile(join(ROOT, 'docs/environment.md'), 'utf8'),
    )?.[1]
    const rights = documented?.replace('>…', `>${PASSWORD}`).split(' ') ?? []
    await direct.acl('SETUSER', 'gateway', ...rights)
    const { check, redis } = clientOf(`redis://gateway:${ENCODED}@127.0.0.1:${port}`)
    await check()
    expect(await admitAndRevoke(redis)).toEqual([undefined, 'token_revoked'])
    const [reply] = await redis.send([['SET', 'other', 1]])
    expect(reply?.error).toMatch(/^NOPERM/)
  })

  test('without rights is an outage, and nothing is admitted', async () => {
    const { port } = await server()
    const direct = directTo(port)
    cleanups.push(() => direct.disconnect())
    await direct.acl('SETUSER', 'gateway', 'on', `>${PASSWORD}`, '+ping')
    const { check, redis } = clientOf(`redis://gateway:${ENCODED}@127.0.0.1:${port}`)
    await check()
    expect(await outcomeOf(admitAndRevoke(redis))).toMatchObject({ fault: 'refused' })
  })
})

describe.skipIf(!hasRedisServer)('TLS', () => {
  test('with a certificate of a private authority, which only NODE_EXTRA_CA_CERTS makes valid', async () => {
    writeAuthority(folder)
    writeCertificate(folder, 'server')
    const tlsPort = await freePort()
    const files = [
      ...['--tls-cert-file', join(folder, 'server.pem')],
      ...['--tls-key-file', join(folder, 'server.key')],
    ]
    const ca = join(folder, 'ca.pem')
    const tls = ['--tls-port', String(tlsPort), ...files, '--tls-ca-cert-file', ca]
    await server(...tls, '--tls-auth-clients', 'no')

    const script = `
      const { connectResp } = await import(${JSON.stringify(join(ROOT, 'src/runtimes/node/redis/resp.ts'))})
      const client = connectResp({ url: process.argv[1], timeoutMs: 5000 })
      const reply = await client.connect({ timeoutMs: 5000 }).send([['PING']]).catch((error) => error.message)
      console.log(JSON.stringify(reply))
      client.close()`
    const ping = (url: string, env: object) => {
      const args = ['--input-type=module', '-e', script, url]
      const { stdout, stderr } = spawnSync(join(ROOT, 'node_modules/.bin/node'), args, {
        env: { ...process.env, ...env },
      })
      return stdout.toString().trim() || stderr.toString()
    }
    const trusted = { NODE_EXTRA_CA_CERTS: ca }
    expect(ping(`rediss://localhost:${tlsPort}`, trusted)).toBe('[{"result":"PONG"}]')
    expect(ping(`rediss://127.0.0.1:${tlsPort}`, trusted)).toBe('[{"result":"PONG"}]')
    expect(ping(`rediss://localhost:${tlsPort}`, {})).toBe('"redis: unreachable"')
    expect(ping(`redis://localhost:${tlsPort}`, trusted)).toBe('"redis: unreachable"')
  })
})

describe.skipIf(!hasRedisServer)('Sentinel', () => {
  const processes = new Map<number, ChildProcess>()
  test('after a failover, calls reach the new master, and a revocation that it has is in force [R37]', async () => {
    const login = ['--requirepass', PASSWORD, '--masterauth', PASSWORD]
    const master = await server(...login)
    const replica = await server(...login, '--replicaof', '127.0.0.1', String(master.port))
    const sentinels = await Promise.all([1, 2, 3].map((n) => startSentinel(n, master.port)))
    const url = `redis+sentinel://:${ENCODED}@${sentinels.map((port) => `127.0.0.1:${port}`).join()}/main`
    const { check, redis } = clientOf(url, { timeoutMs: 1_000 })
    await check()
    const untilSeconds = Date.now() / 1000 + 600
    const revocations = createRevocations(redis, Date.now)
    await revocations.revokeToken({ tokenIdHash: caller.tokenIdHash, untilSeconds })
    const atReplica = directTo(replica.port, PASSWORD)
    cleanups.push(() => atReplica.disconnect())
    const atSentinel = directTo(sentinels[0] ?? 0)
    cleanups.push(() => atSentinel.disconnect())
    const revoked = revokedTokenKey(DEFAULT_KEYS, caller.tokenIdHash)
    await expect.poll(() => atReplica.exists(revoked)).toBe(1)
    const known = async () =>
      JSON.stringify(await atSentinel.call('SENTINEL', 'replicas', 'main')).includes(
        String(replica.port),
      )
    await expect.poll(known).toBe(true)
    await expect
      .poll(async () => ((await atSentinel.call('SENTINEL', 'sentinels', 'main')) as []).length)
      .toBe(2)

    await master.close()
    const admission = createAdmission({ store: createRedisAdmissionStore(redis), now: Date.now })
    const admit = () => admission.admit({ principal: caller, address: 'unknown', limits: [] })
    const codes = new Set<unknown>()
    await expect
      .poll(
        async () => {
          const outcome = await outcomeOf(admit())
          // Until the Sentinels agree on a new master, each call is an outage.
          const code =
            outcome instanceof Unavailable
              ? 'outage'
              : (outcome as Awaited<ReturnType<typeof admit>>).denial?.code
          codes.add(code)
          return code
        },
        { timeout: 40_000, interval: 100 },
      )
      .toBe('token_revoked')
    expect([...codes].filter((code) => code !== 'outage')).toEqual(['token_revoked'])
    expect(await atReplica.info('replication')).toMatch(/role:master/)
  })

  test('a master that was paused and replaced is not believed, and would be without the fence', async () => {
    const login = ['--requirepass', PASSWORD, '--masterauth', PASSWORD]
    const master = await server(...login)
    const replica = await server(...login, '--replicaof', '127.0.0.1', String(master.port))
    const sentinels = await Promise.all([1, 2, 3].map((n) => startSentinel(n, master.port)))
    const url = `redis+sentinel://:${ENCODED}@${sentinels.map((port) => `127.0.0.1:${port}`).join()}/main`
    const mistake = expect.stringMatching(/^REDIS_FENCE_MS: 1000 ms and the deadline of 1000 ms/)
    const slow = clientOf(url, { timeoutMs: 1_000, fenceMs: 1_000 })
    await expect(slow.check()).rejects.toMatchObject({ mistakes: [mistake] })
    const fenced = clientOf(url, { timeoutMs: 1_000 })
    expect(await fenced.check()).toEqual([])
    const believing = clientOf(url, { timeoutMs: 20_000, fenceMs: Number.POSITIVE_INFINITY })
    const read = ({ redis }: typeof fenced) =>
      redis.send([['GET', 'revoked']], { once: true }).catch((error: unknown) => error)
    expect(await read(fenced)).toEqual([{ result: null }])
    expect(await read(believing)).toEqual([{ result: null }])
    const atReplica = directTo(replica.port, PASSWORD)
    const atSentinel = directTo(sentinels[0] ?? 0)
    cleanups.push(
      () => atReplica.disconnect(),
      () => atSentinel.disconnect(),
    )
    await expect
      .poll(async () => ((await atSentinel.call('SENTINEL', 'sentinels', 'main')) as []).length)
      .toBe(2)
    await expect
      .poll(async () => JSON.stringify(await atSentinel.call('SENTINEL', 'replicas', 'main')))
      .toContain(String(replica.port))

    master.process.kill('SIGSTOP')
    const first = believing.redis.send([['GET', 'revoked']], { once: true })
    await expect.poll(() => atReplica.info('replication')).toMatch(/role:master/)
    await atReplica.set('revoked', '1')
    const answers = Promise.all([read(fenced), read(believing)])
    master.process.kill('SIGCONT')
    // The old master answers, and does not have what its successor has.
    expect(await first).toEqual([{ result: null }])
    const [withFence, without] = await answers
    expect(without).toEqual([{ result: null }])
    expect(withFence).not.toEqual([{ result: null }])
    await expect.poll(() => read(fenced)).toEqual([{ result: '1' }])
  })

  test.each(['hangs', 'has an old password'])('calls succeed if one of three %s', async (fault) => {
    const master = await server('--requirepass', PASSWORD)
    const old = fault === 'hangs' ? PASSWORD : 'old'
    // The first one, so that it is in the way of each search for the master.
    const first = await startSentinel(1, master.port, old)
    const others = await Promise.all([2, 3].map((n) => startSentinel(n, master.port)))
    const url = `redis+sentinel://:${ENCODED}@${[first, ...others].map((port) => `127.0.0.1:${port}`).join()}/main`
    const atFirst = directTo(first)
    cleanups.push(() => atFirst.disconnect())
    const viewOfFirst = async () => String(await atFirst.call('SENTINEL', 'MASTER', 'main'))
    if (fault === 'hangs') processes.get(first)?.kill('SIGSTOP')
    else await expect.poll(viewOfFirst, { timeout: 10_000 }).toContain('s_down')
    const client = clientOf(url, { timeoutMs: 1_000 })
    await expect
      .poll(() => outcomeOf(client.redis.send([['PING']])), { timeout: 5_000 })
      .toEqual([{ result: 'PONG' }])
  })

  async function startSentinel(
    n: number,
    masterPort: number,
    password = PASSWORD,
  ): Promise<number> {
    const port = await freePort()
    const file = join(folder, `sentinel-${n}.conf`)
    const lines = [
      `port ${port}`,
      'bind 127.0.0.1',
      `dir ${folder}`,
      `sentinel monitor main 127.0.0.1 ${masterPort} 2`,
      `sentinel auth-pass main ${password}`,
      `sentinel down-after-milliseconds main ${DOWN_AFTER_MS}`,
      'sentinel failover-timeout main 5000',
    ]
    writeFileSync(file, `${lines.join('\n')}\n`)
    const { close, process } = await startRealServer([file, '--sentinel'], port)
    cleanups.push(close)
    processes.set(port, process)
    return port
  }
})

/** Faults of a Redis over RESP are outages: no call is answered wrongly, and none waits too long. */
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { startFaultProxy } from '../../dev/fault-proxy/proxy.ts'
import { startRedis } from '../../dev/redis.ts'
import { createAdmission } from '../../src/access/admission/admission.ts'
import { createRedisAdmissionStore } from '../../src/access/admission/redis/store.ts'
import { createRevocations } from '../../src/access/revocation/redis/revocations.ts'
import { Unavailable } from '../../src/errors.ts'
import type { RedisConnection, UsedSocket } from '../../src/redis/connection.ts'
import { sentOnce } from '../../src/redis/connection.ts'
import { connectResp } from '../../src/runtimes/node/redis/resp.ts'
import { principal } from '../access/admission/callers.ts'
import { bulk, startStubServer } from '../harness/resp-server.ts'

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

/** Connects to a URL. Each connection has its own socket. */
function connectionTo(url: string, timeoutMs = 250): RedisConnection {
  const client = connectResp({ url, timeoutMs })
  cleanups.push(client.close)
  return client.connect({ timeoutMs })
}

async function proxied() {
  const redis = await startRedis()
  const proxy = await startFaultProxy({ target: addressOf(redis.url) })
  cleanups.push(redis.close, proxy.close)
  return { proxy, url: `redis://127.0.0.1:${proxy.port}`, direct: redis.url }
}
const addressOf = (url: string) => ({ host: '127.0.0.1', port: Number(new URL(url).port) })

async function stubbed(...stub: Parameters<typeof startStubServer>) {
  const server = await startStubServer(...stub)
  cleanups.push(server.close)
  return server
}

const outcomeOf = (call: Promise<unknown>) => call.catch((error: unknown) => error)
const faultOf = async (call: Promise<unknown>) => {
  const outcome = await outcomeOf(call)
  expect(outcome).toBeInstanceOf(Unavailable)
  return (outcome as Unavailable).fault
}

/** Admits one authenticated request with a limit of three. */
function admitOver(redis: RedisConnection, caller = principal()) {
  const admission = createAdmission({ store: createRedisAdmissionStore(redis), now: Date.now })
  const rule = { name: 'test', limit: 3, windowSeconds: 60, onUnavailable: 'deny' } as const
  const limits = [{ rule, key: 'k' }]
  return admission.admit({ principal: caller, address: '192.0.2.1', limits })
}

const GOOD = '*5\r\n:0\r\n:0\r\n:3\r\n:2\r\n:60000\r\n'

describe('a faulty Redis over RESP', () => {
  test('the well-formed reply, from which the malformed ones derive, is accepted', async () => {
    const { url } = await stubbed((socket) => socket.write(GOOD))
    expect(await admitOver(connectionTo(url))).toMatchObject({ denial: undefined })
  })

  test.each([
    ['HTTP', 'HTTP/1.1 400 Bad Request\r\n\r\n'],
    ['an unknown type', '?1\r\n'],
    ['null', '$-1\r\n'],
    ['a null array', '*-1\r\n'],
    ['an empty array', '*0\r\n'],
    ['a short array', '*4\r\n:0\r\n:0\r\n:3\r\n:2\r\n'],
    ['a long array', `${GOOD.replace('*5', '*6')}:1\r\n`],
    ['nulls', '*5\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n'],
    ['texts', '*5\r\n$1\r\n0\r\n$1\r\n0\r\n$1\r\n3\r\n$1\r\n2\r\n$1\r\n6\r\n'],
    ['a status', '+OK\r\n'],
    ['an integer', ':1\r\n'],
    ['an error in an array', GOOD.replace(':3', '-ERR x')],
    ['half a reply', GOOD.slice(0, -4)],
    ['half a reply, then the end', { last: GOOD.slice(0, -4) }],
    ['nothing, then the end', { last: '' }],
  ])('%s is an outage, never a refusal [R06]', async (_, reply) => {
    const { url, connections } = await stubbed((socket) => {
      if (typeof reply === 'string') socket.write(reply)
      else socket.end(reply.last)
    })
    const outcome = await outcomeOf(admitOver(connectionTo(url)))
    expect(outcome).toBeInstanceOf(Unavailable)
    expect(connections()).toBeLessThanOrEqual(2)
  })

  test('after a malformed reply, no reply of the same socket is used [R06]', async () => {
    const { url, connections } = await stubbed((socket) => {
      socket.write(connections() === 1 ? '?1\r\n+STALE\r\n+STALE\r\n' : '+FRESH\r\n')
    })
    const redis = connectionTo(url)
    expect(await faultOf(redis.send([['GET', 'a']]))).toBe('malformed')
    expect(await redis.send([['GET', 'a']])).toEqual([{ result: 'FRESH' }])
  })

  test('a socket with a reply to no command is replaced [R06]', async () => {
    const { url, connections } = await stubbed((socket) => {
      socket.write(connections() === 1 ? '+FIRST\r\n+UNASKED\r\n' : '+FRESH\r\n')
    })
    const redis = connectionTo(url)
    // It was in front of the mark, so either of both may be the reply to nothing.
    expect(await faultOf(redis.send([['GET', 'a']]))).toBe('malformed')
    expect(await redis.send([['GET', 'a']])).toEqual([{ result: 'FRESH' }])
  })

  test.each([
    'LOADING Redis is loading the dataset in memory',
    "OOM command not allowed when used memory > 'maxmemory'.",
    "READONLY You can't write against a read only replica.",
    'NOAUTH Authentication required.',
    "NOPERM User x has no permissions to access the 'pc:secret' key",
    'CLUSTERDOWN The cluster is down',
    'MOVED 1 127.0.0.1:7001',
    'WRONGTYPE Operation against a key holding the wrong kind of value',
    'ERR pc:secret',
  ])('the error "%s" is an outage, and its text is not shown [R05, R12]', async (text) => {
    const { url, received } = await stubbed((socket) => socket.write(`-${text}\r\n`))
    const outcome = (await outcomeOf(admitOver(connectionTo(url)))) as Unavailable
    expect(outcome).toMatchObject({ dependency: 'redis', fault: 'refused' })
    expect(outcome.message).toBe('redis: refused')
    expect(await outcome.getResponse().text()).not.toContain(text.slice(0, 5))
    expect(received.length).toBeLessThanOrEqual(2)
  })

  test.each([
    ['an array of 10^15 items', '*999999999999999\r\n:1\r\n'],
    ['arrays inside of 200,000 arrays', '*1\r\n'.repeat(200_000)],
  ])('%s is an outage, and no exception that ends a program [R06]', async (_, reply) => {
    const uncaught: unknown[] = []
    const before = process.listeners('uncaughtException')
    const catching = (error: unknown) => void uncaught.push(error)
    process.removeAllListeners('uncaughtException').on('uncaughtException', catching)
    cleanups.push(() => {
      process.off('uncaughtException', catching)
      for (const listener of before) process.on('uncaughtException', listener)
    })
    const { url } = await stubbed((socket) => socket.write(reply))
    expect(await outcomeOf(admitOver(connectionTo(url, 2_000)))).toMatchObject({
      dependency: 'redis',
    })
    expect(uncaught).toEqual([])
  })

  test('a reply to the handshake that is no INFO is an outage: later replies would be those of other commands [R06]', async () => {
    const { url, received } = await stubbed((socket) => socket.write(GOOD), '+OK\r\n')
    expect(await faultOf(admitOver(connectionTo(url)))).toBe('malformed')
    expect(received).toEqual([])
  })

  test.each(['NOAUTH Authentication required.', "ERR unknown command 'INFO'"])(
    'a server that refuses the handshake (%s) is an outage [R05]',
    async (text) => {
      const { url } = await stubbed(() => {}, `-${text}\r\n`)
      expect(await faultOf(connectionTo(url).send([['PING']]))).toBe('refused')
    },
  )

  test('without the right to ECHO, replies that are those of other commands are used no longer than a second', async () => {
    const log = vi.spyOn(console, 'error').mockImplementation(() => {})
    onTestFinished(() => log.mockRestore())
    const { url, connections } = await stubbed(
      (socket, text) => {
        const info = text.includes('replication') ? bulk('role:master\r\n') : ''
        // On the first connection, each reply is the one of the command before.
        socket.write(connections() === 1 && info ? `+LATE\r\n${info}` : `${info}+OWN\r\n`)
      },
      undefined,
      () => "-NOPERM User gw has no permissions to run the 'echo' command\r\n",
    )
    const redis = connectionTo(url)
    const read = () => outcomeOf(redis.send([['GET', 'a']]))
    await expect.poll(read).toMatchObject({ dependency: 'redis', fault: 'malformed' })
    expect(await read()).toEqual([{ result: 'OWN' }])
    expect(connections()).toBe(2)
    expect(log.mock.calls).toEqual([
      [
        'redis: the user may not run ECHO, so replies that are not those of their commands are found after a second only; permit +echo',
      ],
    ])
  })

  test('a refused command is logged by its code, once, and without its keys', async () => {
    const log = vi.spyOn(console, 'error').mockImplementation(() => {})
    onTestFinished(() => log.mockRestore())
    const { url } = await stubbed((socket) => socket.write("-NOPERM no access to 'pc:secret'\r\n"))
    const redis = connectionTo(url)
    await redis.send([['CONFIG', 'GET', 'maxmemory']])
    expect(log.mock.calls).toEqual([])
    await redis.send([['GET', 'a']])
    await redis.send([['GET', 'a']])
    expect(log.mock.calls).toEqual([
      [
        'redis: refuses commands (NOPERM: its user may not run the command or use the key); requests may get 503',
      ],
    ])
  })

  test.each(['READONLY', 'MASTERDOWN', 'NOAUTH'])(
    'after %s, the next call uses another socket, as after a failover [R12]',
    async (code) => {
      const { url, connections } = await stubbed((socket) => {
        socket.write(connections() === 1 ? `-${code} no\r\n` : '+OK\r\n')
      })
      const redis = connectionTo(url)
      expect(await redis.send([['SET', 'a', 1]])).toEqual([{ error: `${code} no` }])
      expect(await redis.send([['SET', 'a', 1]])).toEqual([{ result: 'OK' }])
    },
  )

  test('calls of one turn of the event loop leave in one write, and get their own replies', async () => {
    const { url, received } = await stubbed((socket, text) => {
      for (const [name] of text.matchAll(/key-\d+/g)) socket.write(bulk(name))
    })
    const redis = connectionTo(url)
    await redis.send([['GET', 'key-0']])
    const calls = Array.from({ length: 50 }, (_, n) =>
      redis.send([
        ['GET', `key-${n}`],
        ['GET', `key-${n + 100}`],
      ]),
    )
    for (const [n, replies] of (await Promise.all(calls)).entries())
      expect(replies).toEqual([{ result: `key-${n}` }, { result: `key-${n + 100}` }])
    expect(received).toHaveLength(2)
  })
})

describe('a Redis behind a faulty network', () => {
  test('a refused connection is an outage at once, and a call after it is served [R01]', async () => {
    const { proxy, url } = await proxied()
    const redis = connectionTo(url, 5_000)
    await proxy.set({ kind: 'refuse' })
    for (let call = 0; call < 5; call++)
      expect(await faultOf(redis.send([['PING']]))).toBe('unreachable')
    expect(await outcomeOf(admitOver(redis))).toBeInstanceOf(Unavailable)
    await proxy.set({ kind: 'none' })
    await expect.poll(() => outcomeOf(redis.send([['PING']]))).toEqual([{ result: 'PONG' }])
  })

  test('a Redis that hangs is a timeout, and no call after it gets a late reply [R02]', async () => {
    const { proxy, url } = await proxied()
    const redis = connectionTo(url)
    await redis.send([['SET', 'a', 'first']])
    await proxy.set({ kind: 'hang' })
    expect(await faultOf(redis.send([['GET', 'a']]))).toBe('timeout')
    expect(await faultOf(redis.send([['SET', 'a', 'second']]))).toBe('timeout')
    await proxy.set({ kind: 'none' })
    await expect
      .poll(() => outcomeOf(redis.send([['PING'], ['EXISTS', 'a']])))
      .toEqual([{ result: 'PONG' }, { result: 1 }])
  })

  test('a silent socket is replaced, while the server behind it accepts others [R02]', async () => {
    const { url, connections } = await stubbed((socket) => {
      if (connections() > 1) socket.write('+PONG\r\n')
    })
    const redis = connectionTo(url, 50)
    expect(await faultOf(redis.send([['PING']]))).toBe('timeout')
    await expect.poll(() => outcomeOf(redis.send([['PING']]))).toEqual([{ result: 'PONG' }])
    expect(connections()).toBe(2)
  })

  test('a slow network delays replies, and mixes up none [R03]', async () => {
    const { proxy, url } = await proxied()
    const redis = connectionTo(url, 5_000)
    await proxy.set({ kind: 'latency', ms: 50, jitterMs: 20 })
    const names = Array.from({ length: 100 }, (_, n) => `name-${n}`)
    const replies = await Promise.all(
      names.map((name) =>
        redis.send([
          ['SET', name, name],
          ['GET', name],
        ]),
      ),
    )
    expect(replies.map(([, reply]) => reply?.result)).toEqual(names)
  })

  test('a reply that nothing has asked for gives no call the reply of another one [R06]', async () => {
    const { proxy, url, direct } = await proxied()
    const redis = connectionTo(url, 5_000)
    const names = Array.from({ length: 40 }, (_, n) => `n${n}`)
    await redis.send(names.map((name) => ['SET', name, name]))
    const revoked = { ...principal(), tokenIdHash: 'revoked-token' }
    const untilSeconds = Date.now() / 1000 + 60
    const revocations = createRevocations(connectionTo(direct), Date.now)
    await revocations.revokeToken({ tokenIdHash: revoked.tokenIdHash, untilSeconds })
    const single = sentOnce(redis)
    for (const text of ['+OK\r\n', ':1\r\n', '-ERR x\r\n', '$-1\r\n', bulk('n0'), GOOD]) {
      await expect.poll(() => outcomeOf(redis.send([['PING']]))).toEqual([{ result: 'PONG' }])
      await admitOver(redis)
      await proxy.set({ kind: 'insert', text })
      const [, ofRevoked, ...outcomes] = await Promise.all([
        outcomeOf(admitOver(redis)),
        outcomeOf(admitOver(redis, revoked)),
        ...names.map((name) => outcomeOf(single.send([['GET', name]]))),
      ])
      if (!(ofRevoked instanceof Unavailable))
        expect(ofRevoked).toMatchObject({ denial: { code: 'token_revoked' } })
      for (const outcome of outcomes) expect(outcome).toBeInstanceOf(Unavailable)
      await proxy.set({ kind: 'none' })
    }
  })

  test('while the network flaps, each reply is the right one or an outage [R04]', async () => {
    const { proxy, url } = await proxied()
    const redis = connectionTo(url)
    await redis.send(Array.from({ length: 50 }, (_, n) => ['SET', `n${n}`, n]))
    await proxy.set({ kind: 'flap', upMs: 30, downMs: 30 })
    const seen = { right: 0, outages: 0 }
    while (seen.right < 500 || seen.outages < 50) {
      const outcomes = await Promise.all(
        Array.from({ length: 50 }, (_, n) => outcomeOf(redis.send([['GET', `n${n}`]]))),
      )
      for (const [n, outcome] of outcomes.entries()) {
        if (outcome instanceof Unavailable) seen.outages += 1
        else {
          expect(outcome).toEqual([{ result: String(n) }])
          seen.right += 1
        }
      }
      // A refused connection fails within microtasks, and the proxy must get its turn.
      await new Promise((resolve) => setImmediate(resolve))
    }
  })

  test.each([
    ['before its replies', ''],
    ['in the middle of its replies', ':1\r\n:'],
  ])('a call that is cut %s is sent a second time, or with `once` never [R25]', async (_, part) => {
    const { url, received, connections } = await stubbed((socket) => {
      if (connections() % 2 === 1) socket.end(part)
      else socket.write(':3\r\n:4\r\n')
    })
    const increments = [
      ['INCR', 'a'],
      ['INCR', 'b'],
    ] as const
    const repeated = connectionTo(url, 5_000)
    expect(await repeated.send(increments)).toEqual([{ result: 3 }, { result: 4 }])
    expect(received).toHaveLength(2)
    const single = sentOnce(connectionTo(url, 5_000))
    expect(await faultOf(single.send(increments))).toBe('unreachable')
    expect(received).toHaveLength(3)
  })

  test('a call that is cut through the proxy runs at most twice, with `once` at most once [R25]', async () => {
    const { proxy, url, direct } = await proxied()
    const redis = connectionTo(url, 5_000)
    const other = connectionTo(direct, 5_000)
    const counter = async () => Number((await other.send([['GET', 'counter']]))[0]?.result)

    await redis.send([['PING']])
    await proxy.set({ kind: 'reset', afterBytes: 3 })
    expect(await faultOf(sentOnce(redis).send([['INCR', 'counter']]))).toBe('unreachable')
    expect(await counter()).toBe(1)
    await proxy.set({ kind: 'none' })
    await expect.poll(() => outcomeOf(redis.send([['PING']]))).toEqual([{ result: 'PONG' }])
    await proxy.set({ kind: 'reset', afterBytes: 3 })
    expect(await faultOf(redis.send([['INCR', 'counter']]))).toBe('unreachable')
    expect(await counter()).toBeLessThanOrEqual(3)
  })

  test('a call over the socket of an earlier call is never sent over another one', async () => {
    const { url, close } = await startRedis({ prefer: 'server' })
    cleanups.push(close)
    const redis = connectionTo(url)
    const over: UsedSocket = {}
    await redis.send([['INCR', 'n']], { over })
    expect(await redis.send([['DECR', 'n']], { over })).toEqual([{ result: 0 }])
    const killer = connectionTo(url)
    await killer.send([['CLIENT', 'KILL', 'TYPE', 'normal']])
    expect(await faultOf(redis.send([['DECR', 'n']], { over }))).toBe('unreachable')
    // The connection has a new socket by now.
    expect(await redis.send([['GET', 'n']])).toEqual([{ result: '0' }])
    expect(await faultOf(redis.send([['DECR', 'n']], { over }))).toBe('unreachable')
    expect(await redis.send([['GET', 'n']])).toEqual([{ result: '0' }])
  })

  test('after close(), calls in progress and later calls fail, and nothing is connected', async () => {
    const { url, connections } = await stubbed(() => {})
    const client = connectResp({ url })
    const redis = client.connect({ timeoutMs: 5_000 })
    const call = faultOf(redis.send([['PING']]))
    await expect.poll(connections).toBe(1)
    client.close()
    expect(await call).toBe('unreachable')
    expect(await faultOf(redis.send([['PING']]))).toBe('unreachable')
    expect(connections()).toBe(1)
  })
})

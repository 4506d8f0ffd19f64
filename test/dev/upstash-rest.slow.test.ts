/**
 * The local Upstash REST server over each kind of Redis that this machine has, through its official
 * clients and through plain HTTP.
 */
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { Ratelimit } from '@upstash/ratelimit'
import { Redis } from '@upstash/redis'
import { Redis as TcpRedis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type RedisHandle, startRedis } from '../../dev/redis.ts'
import { startUpstashRest, type UpstashRest } from '../../dev/upstash-rest/server.ts'

const TOKEN = 'token-for-tests'
const SCRIPT = '#!lua flags=allow-key-locking\nreturn redis.call("INCRBY", KEYS[1], ARGV[1])'

const sha1 = (text: string) => createHash('sha1').update(text).digest('hex')

const found = await startRedis({ prefer: 'server' }).catch(() => undefined)
await found?.close()
const kinds = found === undefined ? (['embedded'] as const) : (['embedded', 'server'] as const)

describe.each(kinds)('with the Redis of kind %s', (prefer) => {
  let redis: RedisHandle
  let rest: UpstashRest
  let client: Redis

  beforeAll(async () => {
    redis = await startRedis({ prefer })
    rest = await startUpstashRest({ port: 0, token: TOKEN, redis })
    client = new Redis({ url: rest.url, token: TOKEN, enableTelemetry: false })
  })
  afterAll(async () => {
    await rest.close()
    await redis.close()
  })

  async function call(path: string, init: RequestInit = {}) {
    const headers = { authorization: `Bearer ${TOKEN}`, ...init.headers }
    const response = await fetch(rest.url + path, { ...init, headers })
    return { status: response.status, headers: response.headers, body: await response.text() }
  }
  const post = (path: string, body: unknown, headers = {}) =>
    call(path, { method: 'POST', body: JSON.stringify(body), headers })

  test('the Redis has the requested kind', () => {
    expect(redis.kind).toBe(prefer)
  })

  describe('authentication', () => {
    const routes: [string, string][] = [
      ['POST', '/'],
      ['GET', '/'],
      ['POST', '/pipeline'],
      ['POST', '/multi-exec'],
      ['GET', '/get/key'],
      ['POST', '/set/key'],
      ['POST', '/subscribe/channel'],
      ['DELETE', '/get/key'],
    ]
    test.each(routes)('%s %s is refused without the token', async (method, path) => {
      for (const headers of [{}, { authorization: 'Bearer wrong' }, { authorization: TOKEN }]) {
        const body = method === 'POST' ? '["SET","intruder","1"]' : null
        const response = await fetch(rest.url + path, { method, headers, body })
        expect(response.status).toBe(401)
        expect(await response.json()).toEqual({
          error: 'WRONGPASS invalid or missing auth token',
        })
      }
      expect(await client.exists('intruder')).toBe(0)
    })

    test('the query parameter _token replaces the header, and is not an argument', async () => {
      const path = `/echo/hello?_token=${TOKEN}`
      expect(await (await fetch(rest.url + path)).json()).toEqual({ result: 'hello' })
      expect((await fetch(`${rest.url}/echo/hello?_token=wrong`)).status).toBe(401)
    })

    test('a wrong header is refused even with a correct query parameter', async () => {
      const headers = { authorization: 'Bearer wrong' }
      expect((await fetch(`${rest.url}/ping?_token=${TOKEN}`, { headers })).status).toBe(401)
    })
  })

  describe('one command', () => {
    test('accepts strings, numbers and booleans as arguments, and keeps every digit of 64-bit integers', async () => {
      await post('/', ['SET', 'n', 1.5])
      expect((await post('/', ['GET', 'n'])).body).toBe('{"result":"1.5"}')
      await post('/', ['SET', 'flag', true])
      expect((await post('/', ['GET', 'flag'])).body).toBe('{"result":"true"}')
      await call('/', { method: 'POST', body: '["SET","big", 9223372036854775806]' })
      expect((await post('/', ['INCR', 'big'])).body).toBe('{"result":9223372036854775807}')
    })

    test.each(['', '{}', '[]', '[["SET","a","b"]]', '["SET",null]', '["SET",{}]', 'SET a b', '""'])(
      'responds with 400 to a body that is not a command: %s',
      async (body) => {
        const response = await call('/', { method: 'POST', body })
        expect(response.status).toBe(400)
        expect(JSON.parse(response.body).error).toMatch(/^ERR /)
      },
    )

    test('responds with 400 and the message of Redis to an error of Redis', async () => {
      await client.set('text', 'abc')
      const response = await post('/', ['INCR', 'text'])
      expect(response.status).toBe(400)
      expect(JSON.parse(response.body).error).toMatch(/^ERR value is not an integer/)
    })

    test('returns null for a missing value, nested lists, and integers', async () => {
      const lua = 'return {1, "a", {2, {"b"}}, redis.status_reply("fine"), 3.99}'
      expect((await post('/', ['GET', 'no such key'])).body).toBe('{"result":null}')
      const { body } = await post('/', ['EVAL', lua, 0])
      expect(JSON.parse(body).result).toEqual([1, 'a', [2, ['b']], 'fine', 3])
    })

    test('returns a different Upstash-Sync-Token with every response', async () => {
      const first = await call('/ping')
      const second = await call('/ping')
      expect(first.headers.get('upstash-sync-token')).toBeTruthy()
      expect(second.headers.get('upstash-sync-token')).not.toBe(
        first.headers.get('upstash-sync-token'),
      )
    })

    test.each([['MULTI'], ['SELECT', '1'], ['CLIENT', 'REPLY', 'OFF'], ['SHUTDOWN'], ['MONITOR']])(
      'refuses a command that changes the shared connection: %s',
      async (...command) => {
        expect((await post('/', command)).status).toBe(400)
        expect((await post('/', ['PING'])).body).toBe('{"result":"PONG"}')
      },
    )

    test('executes other commands while a command blocks', async () => {
      const queue = randomUUID()
      const popped = post('/', ['BLPOP', queue, 30])
      await expect.poll(() => post('/', ['PING'])).toMatchObject({ status: 200 })
      await client.lpush(queue, 'job')
      expect(JSON.parse((await popped).body)).toEqual({ result: [queue, 'job'] })
    })

    test('responds with 413 to a body over 10 MB, and accepts one just below', async () => {
      const limit = 10 * 1024 * 1024
      const tooLarge = await call('/set/large', { method: 'POST', body: Buffer.alloc(limit + 1) })
      expect(tooLarge.status).toBe(413)
      expect(JSON.parse(tooLarge.body).error).toMatch(/^ERR max request size exceeded/)
      // The embedded Redis, in JavaScript, may need longer than the server waits for Redis.
      if (prefer === 'embedded') return
      expect((await call('/set/large', { method: 'POST', body: Buffer.alloc(limit) })).status).toBe(
        200,
      )
      expect((await call('/strlen/large')).body).toBe(`{"result":${limit}}`)
      await client.del('large')
    })

    test('responds with 413 to a chunked body over 10 MB', async () => {
      const body = Readable.from(Array.from({ length: 12 }, () => Buffer.alloc(1024 * 1024)))
      const init = { method: 'POST', body: Readable.toWeb(body), duplex: 'half' }
      expect((await call('/set/large', init as RequestInit)).status).toBe(413)
      expect((await call('/exists/large')).body).toBe('{"result":0}')
    })
  })

  describe('a command as a path', () => {
    test.each(['GET', 'POST', 'PUT'])(
      '%s executes the path segments as a command',
      async (method) => {
        const key = randomUUID()
        expect((await call(`/set/${key}/bar`, { method })).body).toBe('{"result":"OK"}')
        expect((await call(`/get/${key}`, { method })).body).toBe('{"result":"bar"}')
      },
    )

    test('HEAD executes the command and responds without a body', async () => {
      const key = randomUUID()
      expect(await call(`/incr/${key}`, { method: 'HEAD' })).toMatchObject({
        status: 200,
        body: '',
      })
      expect((await call(`/get/${key}`)).body).toBe('{"result":"1"}')
    })

    test.each(['DELETE', 'PATCH', 'OPTIONS'])('%s is not a method of the API', async (method) => {
      expect((await call('/get/key', { method })).status).toBe(405)
    })

    test('an encoded slash, a plus and a space belong to their argument', async () => {
      await call('/set/a%2Fb+c/d%20e')
      expect(await client.get('a/b+c')).toBe('d e')
    })

    test('bytes in the path and in the body reach Redis unchanged', async () => {
      const bytes = randomBytes(512)
      const base64 = { 'upstash-encoding': 'base64' }
      await call('/set/raw', { method: 'POST', body: bytes })
      const { body } = await call('/get/raw', { headers: base64 })
      expect(Buffer.from(JSON.parse(body).result, 'base64')).toEqual(bytes)
      await call('/set/raw2/%FF%00%FE')
      expect((await call('/get/raw2', { headers: base64 })).body).toBe('{"result":"/wD+"}')
    })

    test('the body follows the path as an argument, and the query follows the body', async () => {
      const key = randomUUID()
      await call(`/set/${key}?EX=100&NX`, { method: 'POST', body: '{"json":true}' })
      expect(await client.get(key)).toEqual({ json: true })
      expect(await client.ttl(key)).toBeGreaterThan(0)
      expect((await call(`/set/${key}/again?NX`)).body).toBe('{"result":null}')
    })
  })

  describe('encodings of the response', () => {
    const base64 = { 'upstash-encoding': 'base64' }

    test('base64 encodes every string, nested ones too, but not OK, numbers, nulls and errors', async () => {
      expect((await post('/', ['SET', 'k', 'OK'], base64)).body).toBe('{"result":"OK"}')
      expect((await post('/', ['PING'], base64)).body).toBe('{"result":"UE9ORw=="}')
      const lua = 'return {1, "a", {"b"}, false, "OK"}'
      expect((await post('/', ['EVAL', lua, 0], base64)).body).toBe(
        '{"result":[1,"YQ==",["Yg=="],null,"T0s="]}',
      )
      expect((await post('/', ['NOPE'], base64)).body).toMatch(/^\{"error":"ERR unknown command/)
    })

    test('the client decodes the string OK like the status OK', async () => {
      await client.set('k', 'OK')
      expect(await client.get('k')).toBe('OK')
      expect(await client.mget('k', 'k')).toEqual(['OK', 'OK'])
    })

    test('text replaces bytes that are not UTF-8 with U+FFFD', async () => {
      await call('/set/raw/%FFx')
      expect((await call('/get/raw')).body).toBe('{"result":"\ufffdx"}')
    })

    test('resp2 returns the bytes that Redis sends', async () => {
      const headers = { 'upstash-response-format': 'resp2' }
      const { body } = await post(
        '/pipeline',
        [
          ['SET', 'k', 'v'],
          ['GET', 'k'],
          ['DEL', 'k'],
        ],
        headers,
      )
      expect(body).toBe('+OK\r\n$1\r\nv\r\n:1\r\n')
      expect((await post('/', ['MGET', 'nothing'], headers)).body).toBe('*1\r\n$-1\r\n')
      expect((await post('/', ['PING'], { ...headers, ...base64 })).status).toBe(400)
      expect((await post('/', ['PING'], { 'upstash-response-format': 'xml' })).status).toBe(400)
    })
  })

  describe('several commands', () => {
    test('a pipeline returns a result for each command, and continues after an error', async () => {
      const commands = [['SET', 'p', 'x'], ['INCR', 'p'], ['MULTI'], ['NOPE'], ['GET', 'p']]
      const { status, body } = await post('/pipeline', commands)
      expect(status).toBe(200)
      expect(JSON.parse(body)).toEqual([
        { result: 'OK' },
        { error: expect.stringMatching(/^ERR value is not an integer/) },
        { error: "ERR Command is not available: 'MULTI'" },
        { error: expect.stringMatching(/^ERR unknown command/) },
        { result: 'x' },
      ])
    })

    test.each(['[]', '["PING"]', '{}', '[["PING"],"PING"]', '[[]]', 'x'])(
      'a body that is not a pipeline gets 400: %s',
      async (body) => {
        for (const path of ['/pipeline', '/multi-exec']) {
          expect((await call(path, { method: 'POST', body })).status).toBe(400)
        }
      },
    )

    test('a transaction executes all commands, even if one of them fails', async () => {
      const key = randomUUID()
      const { status, body } = await post('/multi-exec', [
        ['SET', key, 'x'],
        ['LPUSH', key, 'y'],
        ['GET', key],
      ])
      expect(status).toBe(200)
      expect(JSON.parse(body)).toEqual([
        { result: 'OK' },
        { error: expect.stringMatching(/^WRONGTYPE/) },
        { result: 'x' },
      ])
    })

    test.each([[['GET']], [['NOPE']], [['WATCH', 'k']], [['EXEC']]])(
      'a transaction with a refused command has no effect: %s',
      async (refused) => {
        const key = randomUUID()
        const { status, body } = await post('/multi-exec', [['SET', key, '1'], refused])
        expect(status).toBe(400)
        expect(JSON.parse(body).error).toMatch(/^(EXECABORT|ERR) /)
        expect(await client.exists(key)).toBe(0)
        expect(await client.ping()).toBe('PONG')
      },
    )

    test('concurrent transactions and commands do not mix', async () => {
      const key = randomUUID()
      const pairs = await Promise.all(
        Array.from({ length: 50 }, async () => {
          const [, [a, b]] = await Promise.all([
            client.incr(key),
            client.multi().incr(key).incr(key).exec<[number, number]>(),
          ])
          return b - a
        }),
      )
      expect(new Set(pairs)).toEqual(new Set([1]))
      expect(await client.get(key)).toBe(150)
    })
  })

  describe('scripts with the flag allow-key-locking', () => {
    test('are executed by their text, then by the SHA-1 of that text', async () => {
      const text = `${SCRIPT} -- ${randomUUID()}`
      const sha = sha1(text)
      const key = randomUUID()
      await expect(client.evalsha(sha, [key], ['1'])).rejects.toThrow('NOSCRIPT')
      expect(await client.eval(text, [key], ['2'])).toBe(2)
      expect(await client.evalsha(sha, [key], ['3'])).toBe(5)
      expect(await client.evalsha(sha.toUpperCase(), [key], ['4'])).toBe(9)
    })

    test('have the SHA-1 of the sent text in SCRIPT LOAD and SCRIPT EXISTS', async () => {
      const text = `${SCRIPT} -- ${randomUUID()}`
      const sha = sha1(text)
      expect(await client.scriptExists(sha)).toEqual([0])
      expect(await client.scriptLoad(text)).toBe(sha)
      expect(await client.scriptExists(sha, '0'.repeat(40))).toEqual([1, 0])
      expect(await client.evalsha(sha, [randomUUID()], ['7'])).toBe(7)
    })

    test('are executed read-only, in pipelines and in transactions', async () => {
      const text = `#!lua flags=allow-key-locking\nreturn ARGV[1] -- ${randomUUID()}`
      expect(await client.evalRo(text, [], ['a'])).toBe('a')
      const sha = await client.scriptLoad(text)
      expect(await client.evalshaRo(sha, [], ['b'])).toBe('b')
      expect(await client.pipeline().eval(text, [], ['c']).evalsha(sha, [], ['d']).exec()).toEqual([
        'c',
        'd',
      ])
      expect(await client.multi().scriptLoad(text).evalsha(sha, [], ['e']).exec()).toEqual([
        sha,
        'e',
      ])
    })
  })

  describe('the rate limiter', () => {
    test.each([
      ['fixed window', Ratelimit.fixedWindow(10, '1 h')],
      ['sliding window', Ratelimit.slidingWindow(10, '1 h')],
      ['token bucket', Ratelimit.tokenBucket(10, '1 h', 10)],
    ])('%s permits exactly its limit under concurrency', async (_, limiter) => {
      const ratelimit = new Ratelimit({ redis: client, limiter, prefix: randomUUID() })
      const all = await Promise.all(Array.from({ length: 40 }, () => ratelimit.limit('alice')))
      expect(all.filter(({ success }) => success)).toHaveLength(10)
      expect((await ratelimit.limit('bob')).success).toBe(true)
    })
  })

  describe('event streams', () => {
    test('SUBSCRIBE sends the subscription, then each message', async () => {
      const subscriber = client.subscribe<{ n: number }>('chat')
      onTestFinished(() => subscriber.unsubscribe())
      const messages: unknown[] = []
      subscriber.on('message', ({ message }) => messages.push(message))
      expect(await new Promise((resolve) => subscriber.on('subscribe', resolve))).toBe(1)
      await client.publish('chat', { n: 1 })
      await client.publish('other', { n: 2 })
      await client.publish('chat', { n: 3 })
      await expect.poll(() => messages).toEqual([{ n: 1 }, { n: 3 }])
    })

    test('PSUBSCRIBE sends the pattern and the channel', async () => {
      const subscriber = client.psubscribe<{ n: number }>('user:*')
      onTestFinished(() => subscriber.unsubscribe())
      const message = new Promise((resolve) => subscriber.on('pmessage', resolve))
      await new Promise((resolve) => subscriber.on('psubscribe', resolve))
      await client.publish('user:7', { n: 1 })
      expect(await message).toEqual({ pattern: 'user:*', channel: 'user:7', message: { n: 1 } })
    })

    test('MONITOR sends the commands of other connections', async () => {
      const abort = new AbortController()
      onTestFinished(() => abort.abort())
      const response = await fetch(`${rest.url}/monitor`, {
        method: 'POST',
        headers: { authorization: `Bearer ${TOKEN}`, accept: 'text/event-stream' },
        signal: abort.signal,
      })
      expect(response.headers.get('content-type')).toBe('text/event-stream')
      const key = randomUUID()
      await client.set(key, 'v')
      let text = ''
      for await (const chunk of response.body ?? []) {
        text += Buffer.from(chunk).toString()
        if (text.includes(key)) break
      }
      expect(text).toMatch(/^data: "OK"\n\ndata: [\d.]+ \[0 .*\] "/)
    })

    test('a stream closes its connection to Redis when its listener disconnects', async () => {
      const tcp = new TcpRedis(redis.url)
      onTestFinished(() => tcp.disconnect())
      const listeners = async () => (await tcp.pubsub('NUMSUB', 'left'))[1]
      const subscriber = client.subscribe('left')
      await new Promise((resolve) => subscriber.on('subscribe', resolve))
      expect(await listeners()).toBe(1)
      await subscriber.unsubscribe()
      await expect.poll(listeners).toBe(0)
    })
  })
})

/** Replies to the commands of the gateway are the same over REST, by either client, and over RESP. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { RedisCommand } from '../../src/redis/connection.ts'
import { createScript, runScript } from '../../src/redis/script.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'
import { overFetch, overResp, overRest } from '../harness/redis-protocols.ts'

/** A value with characters of several bytes and with the line ends of RESP. */
const TEXT = 'ümläut €\r\n$5\r\n{"a":"\\u0000"}'

/** In order, because each command sees the writes of those before it. */
const COMMANDS: readonly RedisCommand[] = [
  ['PING'],
  ['SET', 'text', TEXT],
  ['SET', 'text', 'other', 'NX'],
  ['SET', 'number', 5, 'EX', 100, 'NX'],
  ['SET', 'number', 6, 'EX', 100, 'GET'],
  ['GET', 'text'],
  ['GET', 'absent'],
  ['GET', 'number'],
  ['MGET', 'text', 'absent', 'number'],
  ['EXISTS', 'text', 'absent'],
  ['TTL', 'text'],
  ['TTL', 'absent'],
  ['DEL', 'number', 'absent'],
  ['HGETALL', 'absent'],
  ['EVAL', "redis.call('HSET', 'hash', 'a', '1', 'b', '') return redis.call('HLEN', 'hash')", 0],
  ['HGETALL', 'hash'],
  ['hgetall', 'hash'],
  ['HMGET', 'hash', 'a', 'absent'],
  ['EVAL', "return redis.call('SADD', 'set', 'a')", 0],
  ['SMEMBERS', 'set'],
  ['SMEMBERS', 'absent'],
  ['SREM', 'set', 'a'],
  ['ZADD', 'sorted', 1.5, 'a', '2', 'b', '1e3', 'c'],
  ['ZCARD', 'sorted'],
  ['ZCOUNT', 'sorted', '(1', '+inf'],
  ['ZRANGE', 'sorted', 0, -1, 'WITHSCORES'],
  ['ZRANGEBYSCORE', 'sorted', '-inf', '+inf', 'LIMIT', 0, 1],
  ['ZRANGEBYLEX', 'sorted', '-', '+'],
  ['ZREVRANGE', 'sorted', 0, 0],
  ['ZREVRANGEBYLEX', 'sorted', '+', '-'],
  ['ZREM', 'sorted', 'a'],
  ['GET', 'sorted'],
  ['EVAL', 'return {1, "2", {3, false, {}}, {ok = "FINE"}, 9007199254740991, -1, 1.9, true}', 0],
  ['EVAL', 'return nil', 0],
  ['EVAL', 'return {err = "MINE error"}', 0],
  ['EVAL', 'this is no Lua', 0],
  ['EVALSHA', '0000000000000000000000000000000000000000', 0],
  ['SCRIPT', 'LOAD', 'return 1'],
  ['GET'],
  ['NOSUCHCOMMAND', 'x'],
]

describe.each(['auto', 'embedded'] as const)('replies of Redis (%s)', (prefer) => {
  let redis: TestRedis
  beforeAll(async () => {
    redis = await startTestRedis(prefer)
  })
  afterAll(() => redis.close())

  test('are the same over REST and over RESP, for each command of the gateway', async () => {
    const overEach = []
    for (const connect of [overRest, overResp, overFetch]) {
      await redis.direct.flushall()
      overEach.push(await connect(redis).send(COMMANDS))
    }
    const [rest = [], resp = [], byFetch = []] = overEach
    for (const [index, command] of COMMANDS.entries()) {
      expect([command, resp[index]]).toEqual([command, rest[index]])
      expect([command, byFetch[index]]).toEqual([command, rest[index]])
    }
    expect(resp[5]).toEqual({ result: TEXT })
    expect(resp[6]).toEqual({ result: null })
  })

  test('a script runs once in each call, also after its text was forgotten [R12]', async () => {
    const script = createScript("return redis.call('INCR', KEYS[1])")
    const resp = overResp(redis)
    await redis.direct.flushall()
    const calls: string[] = []
    const recorded = {
      ...resp,
      send: (commands: readonly RedisCommand[]) => {
        calls.push(commands.map(([name]) => name).join(' '))
        return resp.send(commands)
      },
    }
    expect(await runScript(recorded, script, ['counter'], [])).toBe(1)
    expect(await runScript(recorded, script, ['counter'], [])).toBe(2)
    await redis.direct.script('FLUSH')
    expect(await runScript(recorded, script, ['counter'], [])).toBe(3)
    // A script with Upstash's flag is never tried.
    expect(calls).toEqual(['EVALSHA', 'EVAL', 'EVALSHA', 'EVALSHA', 'EVAL'])
  })
})

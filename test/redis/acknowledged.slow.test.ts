/** Writes that replicas must have received, over real servers. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { acknowledged } from '../../src/redis/acknowledged.ts'
import type { RedisConnection } from '../../src/redis/connection.ts'
import { connectResp, type RespClient } from '../../src/runtimes/node/redis/resp.ts'
import {
  directTo,
  hasRedisServer,
  type RealServer,
  startRealServer,
} from '../harness/resp-server.ts'

const folder = mkdtempSync(join(tmpdir(), 'acknowledged-'))
const SET = [['SET', 'k', '1']]
let master: RealServer
let replica: RealServer
let client: RespClient
let redis: RedisConnection
const failures: string[] = []

beforeAll(async () => {
  if (!hasRedisServer) return
  master = await startRealServer(['--dir', folder, '--repl-diskless-sync-delay', '0'])
  replica = await startRealServer([
    ...['--dir', folder, '--replicaof', '127.0.0.1', String(master.port)],
  ])
  client = connectResp({ url: `redis://127.0.0.1:${master.port}`, timeoutMs: 5_000 })
  const breaker = {
    enter: () => 0,
    succeeded() {},
    failed: (_: number, fault: string) => void failures.push(fault),
  }
  redis = client.connect({ timeoutMs: 1_500, breaker })
})
afterAll(async () => {
  if (!hasRedisServer) return
  client.close()
  await replica.close()
  await master.close()
  rmSync(folder, { recursive: true, force: true })
})

describe.skipIf(!hasRedisServer)('a write that replicas must have', () => {
  test('returns the replies of its commands when a replica has it', async () => {
    const direct = directTo(master.port)
    await direct.set('first', '1')
    await expect.poll(() => direct.wait(1, 100)).toBe(1)
    direct.disconnect()
    expect(await redis.send([...SET, ['GET', 'k']], { acknowledgedBy: 1 })).toEqual([
      { result: 'OK' },
      { result: '1' },
    ])
  })

  test('fails with a stopped replica, and neither the requests nor the breaker notice it', async () => {
    replica.process.kill('SIGSTOP')
    const written = redis.send([['SET', 'k', '2']], { acknowledgedBy: 1 }).catch((error) => error)
    const order: string[] = []
    const read = redis.send([['GET', 'k']]).then(() => order.push('request'))
    await Promise.all([read, written.then(() => order.push('writer'))])
    replica.process.kill('SIGCONT')
    expect(await written).toMatchObject({ dependency: 'redis', fault: 'timeout' })
    // The commands have run, although the call failed.
    expect(await redis.send([['GET', 'k']])).toEqual([{ result: '2' }])
    expect(order).toEqual(['request', 'writer'])
    expect(failures).toEqual([])
  })

  test('fails for a call that Redis without memory may not have written', async () => {
    const direct = directTo(master.port)
    const done = ['DEL', 'absent']
    const marked = acknowledged({ ...redis, replicasAcked: 1 })
    expect(await marked.send([done])).toEqual([{ result: 0 }])
    await direct.config('SET', 'maxmemory', '1')
    try {
      // It has written nothing, so a replica need not have what an earlier call wrote.
      await expect(marked.send([done])).rejects.toMatchObject({
        ...{ dependency: 'redis', fault: 'refused' },
      })
    } finally {
      await direct.config('SET', 'maxmemory', '0')
      direct.disconnect()
    }
  })
})

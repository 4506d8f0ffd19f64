/** What the start says of a Redis that does not answer. */
import { expect, test } from 'vitest'
import { connectResp } from '../../src/runtimes/node/redis/resp.ts'
import { freePort } from '../harness/process.ts'

test('a Redis that does not answer at the start is a warning without its password', async () => {
  const client = connectResp({ url: `redis://:secret@127.0.0.1:${await freePort()}` })
  const warnings = await client.check()
  expect(warnings).toEqual([
    'REDIS_URL: the Redis does not answer (unreachable); requests that need it are refused with 503 until it does',
  ])
  client.close()
})

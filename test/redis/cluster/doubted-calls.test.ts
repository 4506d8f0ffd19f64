/** Calls that a master does not get because it is not believed: metrics count each of them. */
import { expect, test } from 'vitest'
import { clusterCalls } from '../../../src/runtimes/node/redis/cluster/calls.ts'
import { createClusterRouter } from '../../../src/runtimes/node/redis/cluster/router.ts'
import { createFencedServer } from '../../../src/runtimes/node/redis/fence/fenced-server.ts'
import { freePort } from '../../harness/process.ts'

const targetAt = (port: number) => ({
  ...{ servers: [{ host: '127.0.0.1', port }], master: undefined, lanes: undefined, tls: false },
  ...{ database: 0, username: undefined, password: undefined },
  sentinelLogin: { username: undefined, password: undefined },
})

test('a call to a server whose proof fails is counted', async () => {
  const server = createFencedServer({
    target: targetAt(await freePort()),
    ...{ silenceMs: 2_000, fenceMs: 800 },
    confirm: async () => {},
  })
  for (const send of [server.send, server.write])
    await expect(send([['GET', 'k']], { isExpired: false })).rejects.toThrow()
  expect(server.state()).toMatchObject({ answered: 0, failed: 0, doubted: 2 })
  server.close()
})

test('a call to a master of a cluster that cannot be verified is counted, also after its deadline', async () => {
  const unused = createClusterRouter({ target: targetAt(1), silenceMs: 1, fenceMs: 1 })
  const node = unused.nodeAt({ host: '127.0.0.1', port: 1 })
  const verifying = Promise.withResolvers<void>()
  let verified: Promise<void> = Promise.reject(new Error('the master has lost its keys'))
  const router = {
    ...{ ...unused, ownerOf: () => node, isVerified: () => false, verified: () => verified },
    suspect() {},
  }
  const target = { slot: 1, prefix: 'pc:{a}:', isWriter: false }
  const send = clusterCalls(router, { timeoutMs: 20 })(target)
  await expect(send([['GET', 'pc:{a}:k']])).rejects.toThrow()
  expect(node.state()).toMatchObject({ failed: 0, doubted: 1 })
  verified = verifying.promise
  await expect(send([['GET', 'pc:{a}:k']])).rejects.toThrow()
  verifying.resolve()
  await expect.poll(() => node.state().doubted).toBe(2)
  expect(node.state()).toMatchObject({ answered: 0, failed: 0 })
})

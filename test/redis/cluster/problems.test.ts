/** What a gateway reports as wrong with its cluster, with a clock of the test. */
import { expect, test } from 'vitest'
import { Unavailable } from '../../../src/errors.ts'
import type { RedisReply } from '../../../src/redis/connection.ts'
import { clusterCalls } from '../../../src/runtimes/node/redis/cluster/calls.ts'
import { DisputedSlots } from '../../../src/runtimes/node/redis/cluster/lane-markers.ts'
import {
  createClusterProblems,
  PATIENCE_MS,
} from '../../../src/runtimes/node/redis/cluster/problems.ts'
import {
  type ClusterNode,
  createClusterRouter,
} from '../../../src/runtimes/node/redis/cluster/router.ts'

const SERVER = { host: '10.0.0.1', port: 6379 }
const TARGET = {
  ...{ servers: [SERVER], master: undefined, lanes: undefined, tls: false, database: 0 },
  ...{ username: undefined, password: undefined },
  sentinelLogin: { username: undefined, password: undefined },
}
/** Connects nothing: what it says is replaced. */
const unused = createClusterRouter({ target: TARGET, silenceMs: 1, fenceMs: 1 })
const timedOut = Object.assign(new Error('connect'), { code: 'ETIMEDOUT' })

function createWorld() {
  const world = {
    nowMs: 0,
    cause: timedOut as unknown,
    isReached: true,
    log: [] as string[],
  }
  const master: ClusterNode = {
    ...unused.nodeAt(SERVER),
    isBelieved: () => world.cause === undefined,
    failure: () => world.cause,
  }
  const problems = createClusterProblems({
    router: {
      masters: () => [master],
      isReachedByOthers: () => world.isReached,
      failure: () => undefined,
    },
    checks: { findings: () => ({ mistakes: [], warnings: [] }) },
    log: (text) => void world.log.push(text),
    now: () => world.nowMs,
  })
  return { world, problems }
}

test('a master that only this gateway cannot reach is wrong after ten seconds, and is logged once', () => {
  const { world, problems } = createWorld()
  problems.report()
  world.nowMs += PATIENCE_MS - 1
  problems.report()
  expect(world.log).toEqual([])
  world.nowMs += 1
  problems.report()
  problems.report()
  const text =
    'REDIS_URL: the cluster announces the master 10.0.0.1:6379, which is reached from other nodes but not from here (ETIMEDOUT); ' +
    'set cluster-announce-ip, cluster-announce-hostname and cluster-announce-port of each node to what gateways reach, or open the network'
  expect(world.log).toEqual([text])
  expect(problems.list()).toEqual([text])
  world.cause = undefined
  problems.report()
  expect(world.log).toEqual([text, `corrected: ${text}`])
})

test('a master that is down for other nodes too is no mistake of an operator', () => {
  const { world, problems } = createWorld()
  world.isReached = false
  problems.report()
  world.nowMs += 2 * PATIENCE_MS
  problems.report()
  expect(world.log).toEqual([])
})

test('a node that says that another one owns its slots is wrong, unless that ends', () => {
  const { world, problems } = createWorld()
  world.cause = new DisputedSlots()
  problems.report()
  world.nowMs += PATIENCE_MS
  expect(problems.list()).toEqual([
    expect.stringMatching(
      /^REDIS_URL: the node at 10\.0\.0\.1:6379 says that another one owns its slots, so that calls would go in circles/,
    ),
  ])
  world.cause = undefined
  expect(problems.list()).toEqual([])
})

test('a certificate that is not accepted is named by its error', () => {
  const { world, problems } = createWorld()
  world.isReached = false
  world.cause = Object.assign(new Error('tls'), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' })
  problems.report()
  world.nowMs += PATIENCE_MS
  expect(problems.list()).toEqual([
    expect.stringContaining('certificate of 10.0.0.1:6379 is not accepted (ERR_TLS_CERT_ALTNAME'),
  ])
})

test('a call that nodes send to each other ends, and is reported for a minute', async () => {
  const { world, problems } = createWorld()
  world.cause = undefined
  let sent = 0
  const node: ClusterNode = {
    ...unused.nodeAt(SERVER),
    async send(commands): Promise<readonly RedisReply[]> {
      sent += 1
      return commands.map(() => ({ error: 'MOVED 1 10.0.0.1:6379' }))
    },
  }
  const router = {
    ...{ ...unused, ownerOf: () => node, moved: () => node, isVerified: () => true },
    suspect() {},
  }
  const target = { slot: 1, prefix: 'pc:{a}:', isWriter: false }
  const send = clusterCalls(router, { timeoutMs: 1_000 }, problems.circled)(target)
  await expect(send([['GET', 'pc:{a}:k']])).rejects.toThrow(Unavailable)
  expect(sent).toBeLessThan(30)
  problems.report()
  expect(world.log).toEqual([expect.stringContaining('calls in circles (MOVED)')])
  world.nowMs += 60_000
  expect(problems.list()).toEqual([])
})

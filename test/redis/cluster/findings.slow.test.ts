/** What is wrong with a real cluster: found at the start, or when a master is first reached, and never served. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  afterAll,
  afterEach,
  beforeAll,
  describe,
  expect,
  type MockInstance,
  test,
  vi,
} from 'vitest'
import { checkResp } from '../../../cli/doctor/resp.ts'
import { createAuditQueue } from '../../../src/audit/queue/audit-queue.ts'
import { Misconfigured } from '../../../src/errors.ts'
import { newAuditTally } from '../../../src/isolate/tally.ts'
import { definePolicy } from '../../../src/policy/policy.ts'
import type { RedisConnection } from '../../../src/redis/connection.ts'
import { allLanes, tagSlot } from '../../../src/redis/lanes.ts'
import { awaitedAuditSink } from '../../../src/runtimes/node/audit/sink.ts'
import { createAuditTrail } from '../../../src/runtimes/node/audit/trail.ts'
import { serve } from '../../../src/runtimes/node/index.ts'
import { redis as createRedis } from '../../../src/runtimes/node/redis/index.ts'
import { connectResp, type RespClient } from '../../../src/runtimes/node/redis/resp.ts'
import type { RespOptions } from '../../../src/runtimes/node/redis/socket/resp-client.ts'
import { anEvent } from '../../audit/event.ts'
import { createKey, ISSUER } from '../../harness/issuer.ts'
import { NEVER } from '../../harness/never.ts'
import { freePort } from '../../harness/process.ts'
import {
  type ClusterNode,
  startRedisCluster,
  type TestCluster,
} from '../../harness/redis-cluster.ts'
import { hasRedisServer } from '../../harness/resp-server.ts'

const LANES = 12
const TIMEOUT_MS = 1_000

describe.skipIf(!hasRedisServer)('a cluster', () => {
  let cluster: TestCluster
  const clients: RespClient[] = []
  let log: MockInstance<typeof console.error>
  beforeAll(async () => {
    log = vi.spyOn(console, 'error').mockImplementation(() => {})
    cluster = await startRedisCluster()
    expect(await client().check()).toEqual([])
  })
  afterEach(() => log.mockClear())
  afterAll(async () => {
    log.mockRestore()
    for (const each of clients) each.close()
    await cluster.close()
  })

  function client(options: Partial<RespOptions> = {}): RespClient {
    const created = connectResp({
      url: `${cluster.url}/?lanes=${LANES}`,
      timeoutMs: TIMEOUT_MS,
      ...options,
    })
    clients.push(created)
    return created
  }
  const logged = () => log.mock.calls.flat().join('\n')
  const mistakesOf = (tested: RespClient): Promise<unknown> =>
    tested
      .check()
      .catch((error: unknown) => (error instanceof Misconfigured ? error.mistakes : error))
  const settingAt = async ({ direct }: ClusterNode, name: string, value: string) =>
    expect(await direct.config('SET', name, value)).toBe('OK')
  /** Returns whether each lane answered, by its master. */
  async function answers(redis: RedisConnection) {
    const byMaster = new Map<ClusterNode | undefined, unknown[]>()
    for (const lane of allLanes(redis)) {
      const slot = Number(await cluster.replicas[0]?.direct.cluster('KEYSLOT', lane.keys.prefix))
      const owner = await cluster.ownerOf(slot)
      const answer = await lane.send([['EXISTS', `${lane.keys.prefix}any`]]).then(
        () => 'served',
        ({ fault }) => fault,
      )
      byMaster.set(owner, [...(byMaster.get(owner) ?? []), answer])
    }
    return byMaster
  }

  test.each([
    ['maxmemory-policy', 'volatile-lru', 'noeviction'],
    ['cluster-allow-reads-when-down', 'yes', 'no'],
    ['cluster-node-timeout', '1500', '2000'],
  ])(
    'that was away at the start is checked when it is reached: a master with %s %s never serves',
    async (name, wrong, right) => {
      // Not the one with the control lane: without it, nothing is served.
      const [, , wrongly] = cluster.masters
      if (wrongly === undefined) throw new Error('there is no third master')
      await settingAt(wrongly, name, wrong)
      try {
        // Nothing answered at the start: no check has been made.
        const tested = client()
        const redis = tested.connect({ timeoutMs: TIMEOUT_MS })
        const answered = await answers(redis)
        expect(new Set(answered.get(wrongly)), NEVER).toEqual(new Set(['refused']))
        for (const [owner, replies] of answered)
          if (owner !== wrongly) expect(new Set(replies)).toEqual(new Set(['served']))
        await expect.poll(logged).toMatch(name)
        expect(tested.problems().join()).toMatch(name)
        await settingAt(wrongly, name, right)
        await expect
          .poll(async () => new Set((await answers(redis)).get(wrongly)))
          .toEqual(new Set(['served']))
        expect(tested.problems()).toEqual([])
        await expect.poll(logged).toMatch(/corrected: REDIS_/)
      } finally {
        await settingAt(wrongly, name, right)
      }
    },
  )

  test('that would stop as a whole if one master fails is served, and the log and readiness say so', async () => {
    const [first] = cluster.masters
    if (first === undefined) throw new Error('there is no master')
    await settingAt(first, 'cluster-require-full-coverage', 'yes')
    const tested = client()
    const answered = await answers(tested.connect({ timeoutMs: TIMEOUT_MS }))
    expect(new Set([...answered.values()].flat())).toEqual(new Set(['served']))
    expect(tested.problems()).toEqual([
      expect.stringMatching(/^REDIS_URL: the cluster has cluster-require-full-coverage yes/),
    ])
    await expect.poll(logged).toContain('cluster-require-full-coverage')
    await settingAt(first, 'cluster-require-full-coverage', 'no')
  })

  test('that begins to evict while a gateway runs: readiness shows it, and the other masters serve', async () => {
    const [, , third] = cluster.masters
    if (third === undefined) throw new Error('there is no third master')
    const { publicJwk } = await createKey('idp')
    const issuer = { issuer: ISSUER, audience: 'api', jwks: { keys: [publicJwk] } }
    const server = await serve({
      policy: definePolicy({
        roles: {},
        limits: { all: { limit: 9, windowSeconds: 60, by: 'address', onUnavailable: 'deny' } },
        routes: [{ method: 'GET', path: '/', anonymous: true, limits: ['all'] }],
      }),
      port: 0,
      writeEvent: () => {},
      env: {
        ...{ REDIS_URL: `${cluster.url}/?lanes=${LANES}`, REDIS_TIMEOUT_MS: String(TIMEOUT_MS) },
        ...{ PUBLIC_URL: 'https://gateway.test', ORIGIN_URL: 'http://127.0.0.1:9' },
        ISSUERS: JSON.stringify([issuer]),
      },
    })
    const ready = async () => {
      const response = await fetch(`${server.url}/-/readyz`)
      const { checks } = (await response.json()) as { checks: Record<string, string> }
      return [response.status, checks.redis, checks.redisCluster]
    }
    try {
      await expect.poll(ready).toEqual([200, 'ok', 'ok'])
      await settingAt(third, 'maxmemory-policy', 'volatile-lru')
      await third.direct.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
      await expect.poll(ready).toEqual([200, 'ok', 'failed'])
    } finally {
      await settingAt(third, 'maxmemory-policy', 'noeviction')
      await server.close()
    }
  })

  test('stores the audit trail, whose calls may take longer than the node timeout', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'cluster-audit-'))
    const trail = createAuditTrail({
      ...{ REDIS_URL: `${cluster.url}/?lanes=${LANES}`, AUDIT_SPOOL: join(folder, 'spool') },
      AUDIT_DATABASE: `sqlite:${join(folder, 'audit.db')}`,
    })
    const main = client()
    try {
      await trail.open()
      trail.start()
      trail.connect(main.connect({ timeoutMs: TIMEOUT_MS }))
      const { AUDIT_QUEUE: queue } = trail.bindings
      if (queue === undefined) throw new Error('the trail has no queue')
      const transport = createAuditQueue({ queue, tally: newAuditTally() })
      const sent: Promise<unknown>[] = []
      awaitedAuditSink({ transport }).record(anEvent(), (work) => sent.push(work))
      await Promise.all(sent)
      // The thread has sent the event, and its consumer has read and removed it.
      const stream = main.connect({}).keys.auditStream
      const owner = await cluster.ownerOf(tagSlot('c'))
      if (owner === undefined) throw new Error('there is no control lane')
      const consumed = async () => {
        const groups = await owner.direct.xinfo('GROUPS', stream).catch(() => [])
        const [group = []] = groups as string[][]
        const read = group[group.indexOf('entries-read') + 1]
        return [Number(read) > 0, await owner.direct.xlen(stream)]
      }
      await expect.poll(consumed).toEqual([true, 0])
    } finally {
      await trail.close()
      rmSync(folder, { recursive: true })
    }
  })

  test('that evicts refuses the first call of an app, unless the app accepts it', async () => {
    for (const { direct } of cluster.masters)
      await direct.config('SET', 'maxmemory-policy', 'allkeys-lru')
    const app = createRedis(`${cluster.url}/?lanes=${LANES}`, { timeoutMs: TIMEOUT_MS })
    const accepting = createRedis(`${cluster.url}/?lanes=${LANES}`, {
      ...{ timeoutMs: TIMEOUT_MS, acceptsEviction: true },
    })
    const call = (redis: RedisConnection) => redis.send([['EXISTS', `${redis.keys.prefix}any`]])
    try {
      await expect(call(app), NEVER).rejects.toMatchObject({ fault: 'refused' })
      await expect.poll(logged).toContain('an evicted revocation is lost')
      expect(await call(accepting)).toEqual([{ result: 0 }])
    } finally {
      app.close()
      accepting.close()
      for (const { direct } of cluster.masters)
        await direct.config('SET', 'maxmemory-policy', 'noeviction')
    }
  })

  test('with one master that hangs is refused for what the others say', async () => {
    const [first, second] = cluster.masters
    if (first === undefined || second === undefined) throw new Error('there are no masters')
    await settingAt(second, 'maxmemory-policy', 'volatile-lru')
    first.pause()
    try {
      expect(await mistakesOf(client())).toEqual([
        expect.stringMatching(/maxmemory-policy volatile-lru, and an evicted/),
      ])
    } finally {
      first.resume()
      await settingAt(second, 'maxmemory-policy', 'noeviction')
    }
    await cluster.settled()
  })

  test.each([
    ['CLUSTER SLOTS', '-cluster|slots'],
    ['CLUSTER NODES', '-cluster|nodes'],
  ])(
    'whose user may not run %s is refused, and the message names the right',
    async (command, rule) => {
      for (const { direct } of cluster.nodes)
        await direct.acl('SETUSER', 'other', 'RESET', 'on', '>secret', '~*', '+@all', rule)
      const url = `${cluster.url.replace('//', '//other:secret@')}/?lanes=${LANES}`
      const text = `the user may not run ${command}, without which no master is used; allow +${rule.slice(1)}`
      const tested = client({ url })
      expect(await mistakesOf(tested)).toEqual([expect.stringContaining(text)])
      const redis = tested.connect({ timeoutMs: TIMEOUT_MS })
      await expect(redis.send([['EXISTS', `${redis.keys.prefix}any`]])).rejects.toMatchObject({
        fault: 'refused',
      })
      expect(tested.problems().join()).toContain(text)
      await expect.poll(logged).toContain(text)
      expect(await checkResp({ url, prefix: 'pc:', timeoutMs: 250 })).toEqual([
        expect.objectContaining({ level: 'error', seen: expect.stringContaining(text) }),
      ])
    },
  )

  describe('whose nodes announce', () => {
    /** Sets the ports, and waits until every node has the new port of each node, not only the port. */
    const announce = async (ports: ReadonlyMap<ClusterNode, number>) => {
      const expected: string[] = []
      for (const [node, port] of ports) {
        await settingAt(node, 'cluster-announce-port', String(port))
        const id = String(await node.direct.cluster('MYID'))
        expected.push(`${id} 127.0.0.1:${port === 0 ? node.port : port}@`)
      }
      await expect
        .poll(async () => {
          const views = await Promise.all(
            cluster.nodes.map(async ({ direct }) => String(await direct.cluster('NODES'))),
          )
          return views.every((view) => expected.every((start) => view.includes(start)))
        })
        .toBe(true)
    }

    test('an address that gateways cannot reach: the start, the doctor and the log say what to announce', async () => {
      const [, , other] = cluster.masters
      if (other === undefined) throw new Error('there is no third master')
      const closed = await freePort()
      await announce(new Map([[other, closed]]))
      try {
        const text = new RegExp(
          `the cluster announces the master 127.0.0.1:${closed}, which is reached from other nodes but not from here \\(ECONNREFUSED\\); set cluster-announce-ip`,
        )
        const tested = client()
        expect(await tested.check()).toContainEqual(expect.stringMatching(text))
        const target = { url: `${cluster.url}/?lanes=${LANES}`, prefix: 'pc:', timeoutMs: 250 }
        expect(await checkResp(target)).toContainEqual(
          expect.objectContaining({ level: 'warning', seen: expect.stringMatching(text) }),
        )
      } finally {
        await announce(new Map([[other, 0]]))
      }
    })

    test('the addresses of each other: the start says that calls would go in circles, and serves none', async () => {
      const [first, second] = cluster.masters
      if (first === undefined || second === undefined) throw new Error('there are no masters')
      await announce(
        new Map([
          [first, second.port],
          [second, first.port],
        ]),
      )
      try {
        const tested = client()
        const warnings = await tested.check()
        for (const { port } of [first, second])
          expect(warnings).toContainEqual(
            expect.stringContaining(
              `the node at 127.0.0.1:${port} says that another one owns its slots`,
            ),
          )
        const answered = await answers(tested.connect({ timeoutMs: 300 }))
        expect([...answered.values()].flat(), NEVER).not.toContain('served')
      } finally {
        await announce(
          new Map([
            [first, 0],
            [second, 0],
          ]),
        )
      }
    })
  })
})

/** What masters must say about their markers, so that one of them is believed. */
import { expect, test } from 'vitest'
import type { RedisCommand, RedisReply } from '../../../src/redis/connection.ts'
import { tagSlot } from '../../../src/redis/lanes.ts'
import { createLaneMarkers } from '../../../src/runtimes/node/redis/cluster/lane-markers.ts'
import {
  type ClusterNode,
  createClusterRouter,
} from '../../../src/runtimes/node/redis/cluster/router.ts'
import { connectResp } from '../../../src/runtimes/node/redis/resp.ts'

const SERVER = { host: '127.0.0.1', port: 1 }
const TARGET = {
  ...{ servers: [SERVER], master: undefined, lanes: undefined, tls: false, database: 0 },
  ...{ username: undefined, password: undefined },
  sentinelLogin: { username: undefined, password: undefined },
}
/** Connects nothing: its `query` is replaced. */
const unused = createClusterRouter({ target: TARGET, silenceMs: 1, fenceMs: 1 })

const master = (answer: (command: RedisCommand) => RedisReply): ClusterNode => ({
  ...unused.nodeAt(SERVER),
  query: async (commands) => commands.map(answer),
})
const nothing = ([name]: RedisCommand): RedisReply => ({ result: name === 'GET' ? null : 0 })
const empty = () => master(nothing)
const down = () => master(() => ({ error: 'CLUSTERDOWN The cluster is down' }))
const silent = () =>
  master(() => {
    throw new Error('connecting')
  })

function markersOf(...masters: ClusterNode[]) {
  const client = connectResp({ url: 'redis://127.0.0.1:1' })
  const connection = client.connect({})
  return createLaneMarkers({
    ...{ keyPrefix: 'pc:', lanes: 16, masters: () => masters, nodeAt: unused.nodeAt },
    ...{ connectionOf: () => connection, warn: () => {}, now: () => 0 },
  })
}
const CONTROL_SLOT = tagSlot('c')
const ownsFirst = (slot: number) => slot < 8_192
const ownsAll = () => true

test('a master that answers with an error is not believed, whatever it has', async () => {
  const node = down()
  await expect(markersOf(node).verify(node, ownsAll)).rejects.toThrow('does not say')
})

test.each([
  ['do not answer', silent],
  ['have no owner of their slots', down],
])('an empty control master is not that of a new cluster if others %s', async (_, other) => {
  const control = master((command) =>
    String(command[1]).startsWith('pc:{c}:') ? nothing(command) : { error: 'MOVED 1 127.0.0.1:1' },
  )
  await expect(
    markersOf(control, other()).verify(control, (slot) => slot === CONTROL_SLOT),
  ).rejects.toThrow('whether the cluster is new')
})

test('all masters of a new cluster are believed', async () => {
  const control = empty()
  await expect(markersOf(control, empty()).verify(control, ownsFirst)).resolves.toBeUndefined()
})

/** Process with the cluster of a recorded run, its gates, and its faults. */
import { setTimeout as sleep } from 'node:timers/promises'
import { laneIndex, laneTags, SLOTS, tagSlot } from '../../src/redis/lanes.ts'
import {
  type ClusterNode,
  moveSlot,
  partition,
  startRedisCluster,
  type TestCluster,
} from '../../test/harness/redis-cluster.ts'
import { seededRandom } from '../chaos/faults.ts'
import { serveParent } from '../processes/child.ts'
import { type ClusterAnswer, type ClusterQuestion, LANES, userOf } from './cluster.ts'
import { EVERYBODY } from './terms.ts'

/** A caller with much load, whose slot moves. */
const MOVED_SUBJECT = 'hot-strict'
/** Longer than the node timeout and an election. */
const [AWAY_MS, AWAY_JITTER_MS] = [4_500, 1_500]
const REPLICATED_MS = 20_000
const POLL_MS = 50

const random = seededRandom(Number(process.env.SEED ?? 1))
const cluster = await startRedisCluster({ gates: {} })
const users = EVERYBODY.map(userOf)
const admit = async ({ direct }: ClusterNode) => {
  for (const user of users)
    await direct.call('ACL', 'SETUSER', user, 'on', 'nopass', '~*', '&*', '+@all')
}
for (const node of cluster.nodes) await admit(node)

/** Returns the masters that own slots now. */
async function mastersNow(): Promise<ClusterNode[]> {
  const slots = Array.from({ length: 3 }, (_, at) => Math.floor(((at + 0.5) * SLOTS) / 3))
  const owners = await Promise.all(slots.map((slot) => cluster.ownerOf(slot)))
  return owners.filter((node) => node !== undefined)
}

async function anyMaster(): Promise<ClusterNode> {
  const masters = await mastersNow()
  const master = masters[Math.floor(random() * masters.length)]
  if (master === undefined) throw new Error('the cluster has no master')
  return master
}

const others = (node: ClusterNode) => cluster.nodes.filter((each) => each !== node)

/** Waits until each master has a replica again: revocations need one. */
async function replicated(): Promise<void> {
  await cluster.settled()
  const endMs = Date.now() + REPLICATED_MS
  for (;;) {
    const masters = await mastersNow()
    const infos = await Promise.all(masters.map(({ direct }) => direct.info('replication')))
    if (infos.every((info) => /slave0:.*state=online/.test(info))) return
    if (Date.now() > endMs) throw new Error('a master has no replica')
    await sleep(POLL_MS)
  }
}

const awayMs = () => AWAY_MS + random() * AWAY_JITTER_MS

async function moveHotSlot(): Promise<void> {
  const slot = tagSlot(laneTags(LANES)[laneIndex(MOVED_SUBJECT, LANES)] ?? '')
  const owner = await cluster.ownerOf(slot)
  const masters = await mastersNow()
  const to = masters.find((node) => node !== owner)
  if (to === undefined) throw new Error('there is no master to move a slot to')
  const view: TestCluster = { ...cluster, masters }
  await moveSlot(view, slot, to, () => sleep(200 + random() * 500))
}

/** Lets nothing pass of these users. A connection without a login is no one's yet. */
const hangOf = (users: ReadonlySet<string>) => (from: string) =>
  users.has(from) ? ('hang' as const) : ('serve' as const)

/** Performs one fault once. Returns whether units of windows may be lost: replication is asynchronous. */
async function perform({ name, cutOff }: ClusterQuestion): Promise<ClusterAnswer> {
  const master = await anyMaster()
  switch (name) {
    case 'master-killed':
      await master.kill()
      await sleep(awayMs())
      await master.restart()
      await admit(master)
      await replicated()
      return { mayLoseUnits: true }
    case 'master-paused':
      master.pause()
      await sleep(awayMs())
      master.resume()
      await replicated()
      return { mayLoseUnits: true }
    case 'master-isolated': {
      const mend = partition(cluster, [master])
      // Some gateways reach only this master, and the others only the rest.
      const island = new Set(cutOff.map(userOf))
      const mainland = new Set(users.filter((user) => !island.has(user)))
      master.gates?.clients.set(hangOf(mainland))
      for (const node of others(master)) node.gates?.clients.set(hangOf(island))
      await sleep(awayMs())
      mend()
      for (const node of cluster.nodes) node.gates?.clients.set(() => 'serve')
      await replicated()
      return { mayLoseUnits: true }
    }
    case 'master-unreachable':
      master.gates?.clients.set(hangOf(new Set(cutOff.map(userOf))))
      await sleep(awayMs())
      master.gates?.clients.set(() => 'serve')
      return { mayLoseUnits: false }
    case 'slot-moved':
      await moveHotSlot()
      return { mayLoseUnits: false }
  }
}

serveParent({ url: cluster.url }, perform, cluster.close)

/**
 * Detects a master that has lost its keys. A master without persistence that restarts before its failover is
 * empty, and its replica becomes so too: no caller would be revoked in its lanes.
 */
import { restoreLane } from '../../../../access/revocation/redis/broadcast.ts'
import type { RedisCommand, RedisConnection, RedisReply } from '../../../../redis/connection.ts'
import { clusterKeys, createKeys, replicationKeys } from '../../../../redis/keys.ts'
import { CONTROL_TAG, laneTags, tagSlot } from '../../../../redis/lanes.ts'
import type { RedisServer } from '../../environment/redis-url.ts'
import { UnusableServer } from '../socket/server-info.ts'
import type { ClusterNode } from './router.ts'
import { readRedirection } from './slot-table.ts'

/** The keys of lanes, or of the control lane, are gone. No reply of the master is used. */
class LostKeys extends Error {
  override readonly name = 'LostKeys'
}

/** The keys of the cluster are in another number of lanes. */
export class OtherLanes extends UnusableServer {
  constructor(lanes: number, stored: string) {
    super(
      `has ${lanes} lanes, but the keys of this cluster are in ${stored} lanes; set ?lanes=${stored}`,
    )
  }
}

/** The node reports that another node owns its slots. */
export class DisputedSlots extends Error {
  override readonly name = 'DisputedSlots'
  constructor() {
    super('the master says that another node owns its slots')
  }
}

interface MarkerOptions {
  readonly keyPrefix: string
  readonly lanes: number
  /** Returns the connection to a lane, `undefined` for the control lane. */
  readonly connectionOf: (number: number | undefined) => RedisConnection
  readonly masters: () => readonly ClusterNode[]
  readonly nodeAt: (server: RedisServer) => ClusterNode
  /** Gets what an operator must know. */
  readonly warn: (text: string) => void
  /** Milliseconds since the epoch. */
  readonly now: () => number
}

interface Place {
  /** Undefined: the control lane. */
  readonly number: number | undefined
  readonly slot: number
  readonly marker: string
}

/** The marker of the control lane while the first start sets those of the lanes. */
const BEGUN = 'begun'
const DONE = '1'

/**
 * Creates the check. Each lane has a marker from the first start on. That of the control lane says whether
 * all lanes have got theirs.
 */
export function createLaneMarkers({
  keyPrefix,
  lanes,
  connectionOf,
  masters,
  nodeAt,
  warn,
  now,
}: MarkerOptions) {
  const namesOf = (tag: string) => createKeys(`${keyPrefix}{${tag}}:`)
  const placeOf = (tag: string, number?: number): Place => ({
    number,
    slot: tagSlot(tag),
    marker: replicationKeys(namesOf(tag)).marker,
  })
  const control = placeOf(CONTROL_TAG)
  const stored = clusterKeys(namesOf(CONTROL_TAG)).lanes
  const ofLanes = laneTags(lanes).map(placeOf)
  const restoring = new Map<number, Promise<void>>()

  /** Gives a lane its facts again, over the socket of the fence, because no call is sent to the master yet. */
  async function restore(number: number, node: ClusterNode, hasControl: boolean): Promise<void> {
    const direct = (connection: RedisConnection): RedisConnection => ({
      ...connection,
      send: (commands) => node.query(commands),
    })
    const from = connectionOf(undefined)
    const lane = direct(connectionOf(number))
    await restoreLane(hasControl ? direct(from) : from, lane, number, now)
    await node.query([['SET', replicationKeys(lane.keys).marker, DONE]])
  }

  async function restoreAll(
    lost: readonly Place[],
    node: ClusterNode,
    hasControl: boolean,
  ): Promise<void> {
    for (const { number } of lost) {
      if (number === undefined || restoring.has(number)) continue
      const work = restore(number, node, hasControl).finally(() => restoring.delete(number))
      restoring.set(number, work)
      // The next check of the master begins it again.
      await work.catch(() => {})
    }
  }

  /** Whether any lane has a marker. Throws if there is none, and not every lane was read. */
  async function anyLaneIsMarked(): Promise<boolean> {
    const commands = ofLanes.map(({ marker }) => exists(marker))
    const all = await Promise.all(
      masters().map((node) => node.query(commands).catch((): readonly RedisReply[] => [])),
    )
    if (all.flat().some(({ result }) => result === 1)) return true
    const isRead = (at: number) => all.some((replies) => replies[at]?.result === 0)
    if (ofLanes.every((_, at) => isRead(at))) return false
    throw new Error('not every master says whether the cluster is new')
  }

  /** Whether a node has each marker. While its slot moves, the marker may be at the next owner already. */
  async function markersAt(node: ClusterNode, places: readonly Place[]): Promise<boolean[]> {
    const replies = await node.query(places.map(({ marker }) => exists(marker)))
    return Promise.all(
      places.map(async ({ marker }, at) => {
        const reply = replies[at]
        const moving = reply?.error ? readRedirection(reply.error, node.server) : undefined
        if (moving?.kind !== 'ask') return isPresent(reply)
        const [, later] = await nodeAt(moving.server).query([['ASKING'], exists(marker)])
        return isPresent(later)
      }),
    )
  }

  return {
    /** Throws `LostKeys` if a master has lost the keys of lanes, and begins to restore them. */
    async verify(node: ClusterNode, owns: (slot: number) => boolean): Promise<void> {
      const here = [control, ...ofLanes].filter(({ slot }) => owns(slot))
      const found = await markersAt(node, here)
      let lost = here.filter((_, at) => !found[at])
      if (lost.length === 0) return
      const hasControl = here.includes(control)
      const ask: RedisConnection['send'] = hasControl ? node.query : connectionOf(undefined).send
      const [state, count] = (await ask([get(control.marker), get(stored)])).map(textIn)
      // A gateway with a wrong number of lanes looks in the wrong places, and must restore nothing there.
      if (count !== undefined && count !== String(lanes)) throw new OtherLanes(lanes, count)
      if (state === BEGUN) return
      if (state === undefined) {
        // A new cluster.
        if (!(await anyLaneIsMarked())) return
        if (count === undefined) {
          warn(
            'Redis Cluster: the control lane has lost its keys: clients, API keys, sessions and revocations. ' +
              'Restore them from a backup. To continue without them: ' +
              `SET ${stored} ${lanes}`,
          )
          throw new LostKeys('the control lane has lost its keys')
        }
        // An operator continues without the keys. From now on, a lane without a marker has lost its keys again.
        await ask([['SET', control.marker, DONE, 'NX']])
        lost = lost.filter((place) => place !== control)
        if (lost.length === 0) return
      }
      warn(
        `Redis Cluster: ${node.address} has lost the keys of ${lost.length} lanes, and gets their revocations again`,
      )
      void restoreAll(lost, node, hasControl)
      throw new LostKeys(`${node.address} has lost the keys of lanes`)
    },

    /** Sets the markers of a new cluster. */
    async mark(): Promise<void> {
      const connection = connectionOf(undefined)
      const [, known] = await connection.send([
        ['SET', control.marker, BEGUN, 'NX'],
        get(control.marker),
      ])
      if (textIn(known) === DONE) return
      await Promise.all(
        ofLanes.map(({ number, marker }) => connectionOf(number).send([['SET', marker, DONE]])),
      )
      await connection.send([['SET', control.marker, DONE]])
    },
  }
}

const exists = (key: string): RedisCommand => ['EXISTS', key]
const get = (key: string): RedisCommand => ['GET', key]

/** An error is no answer: a master that has restarted says `CLUSTERDOWN` at first, whatever it has lost. */
function isPresent(reply: RedisReply | undefined): boolean {
  if (reply?.result === 1) return true
  if (reply?.result === 0) return false
  throw failureOf(reply)
}

/** Returns undefined for a key that does not exist. */
function textIn(reply: RedisReply | undefined): string | undefined {
  if (typeof reply?.result === 'string') return reply.result
  if (reply?.result === null) return undefined
  throw failureOf(reply)
}

const failureOf = (reply: RedisReply | undefined): Error =>
  reply?.error?.startsWith('MOVED ')
    ? new DisputedSlots()
    : new Error('the master does not say whether it has its keys')

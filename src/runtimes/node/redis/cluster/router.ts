/** The nodes of a cluster, and which of them owns a slot now. */
import { SLOTS } from '../../../../redis/lanes.ts'
import type { RedisServer, RedisTarget } from '../../environment/redis-url.ts'
import { createFencedServer, type FencedServer, tickMsOf } from '../fence/fenced-server.ts'
import { findMistake } from '../socket/faults.ts'
import { requireCluster } from '../socket/server-info.ts'
import { addressOf, type NodeEntry, type SlotRange } from './slot-table.ts'
import { hasFailed, isConnected, readView, type View } from './view.ts'

/** Views of the cluster are at most so old, also if nothing fails. */
const REFRESH_MS = 30_000
/** While something fails, the cluster is asked no more often. */
const LEAST_REFRESH_MS = 100
/** So many nodes are asked at once; the first answer counts. */
const ASKED_AT_ONCE = 3
/** Calls of a node that lost its slots may still end. */
const LINGER_MS = 2_000
/** How often the state of servers is looked at if there is no fence. */
const DEFAULT_TICK_MS = 200

export interface ClusterNode extends FencedServer {
  readonly address: string
  readonly server: RedisServer
}

export interface RouterOptions {
  readonly target: RedisTarget
  readonly silenceMs: number
  readonly fenceMs: number
  /** Throws if a node must not be used, although it owns these slots. Default: every node may be. */
  readonly verify?: (node: ClusterNode, owns: (slot: number) => boolean) => Promise<void>
  /** The slots that `verify` is about, that of the control lane first. Default: none. */
  readonly verifiedSlots?: readonly number[]
  /** Called when a replica has become a master. Must not throw. Default: nothing. */
  readonly onPromotion?: (address: string) => void
  /** Called some times a second, once the router is used. Must not throw. Default: nothing. */
  readonly onTick?: () => void
}

export type ClusterRouter = ReturnType<typeof createClusterRouter>

/** Creates the router. It connects when the first call needs it. */
export function createClusterRouter({
  target,
  silenceMs,
  fenceMs,
  verify = async () => {},
  verifiedSlots = [],
  onPromotion = () => {},
  onTick = () => {},
}: RouterOptions) {
  const nodes = new Map<string, ClusterNode>()
  const seeds = target.servers.map(addressOf)
  const certificateName = nameIn(target)
  const toVerify = new Set(verifiedSlots)
  /** What the last checks of a node have covered: a node that gains a slot may not have its keys. */
  const covered = new WeakMap<ClusterNode, Set<number>>()
  const verifying = new Map<string, Promise<void>>()
  let owners: (ClusterNode | undefined)[] = []
  let table: readonly SlotRange[] = []
  /** The masters of `table`. They are stored because every tick reads them several times. */
  let masters: readonly ClusterNode[] = []
  let promotions = 0
  let reported: View['nodes']
  let failure: unknown
  let refreshing: Promise<void> | undefined
  let refreshedMs = Number.NEGATIVE_INFINITY
  let isSuspect = false
  let timer: NodeJS.Timeout | undefined
  let isClosed = false
  const now = () => performance.now()

  function nodeAt(server: RedisServer): ClusterNode {
    const address = addressOf(server)
    const known = nodes.get(address)
    if (known !== undefined) return known
    const isNamed = /[a-z]/i.test(server.host) && !server.host.includes(':')
    const fenced = createFencedServer({
      target: { ...target, servers: [server] },
      accept: requireCluster,
      certificateName: isNamed ? undefined : certificateName,
      silenceMs,
      fenceMs,
      confirm: () => confirm(node),
    })
    const node: ClusterNode = { ...fenced, address, server }
    nodes.set(address, node)
    return node
  }

  const entries = (): readonly NodeEntry[] =>
    table.flatMap(({ master, replicas }) => [master, ...replicas])

  async function viewOf(node: ClusterNode): Promise<View> {
    const [slots, list] = await node.query([
      ['CLUSTER', 'SLOTS'],
      ['CLUSTER', 'NODES'],
    ])
    return readView(slots, list, node.server)
  }

  function use({ ranges, nodes: list }: View): void {
    if (isClosed) return
    countPromotions(ranges)
    table = ranges
    masters = [...new Set(ranges.map(({ master }) => nodeAt(master.server)))]
    reported = list
    failure = undefined
    const next: (ClusterNode | undefined)[] = new Array(SLOTS)
    for (const { from, to, master } of ranges) next.fill(nodeAt(master.server), from, to + 1)
    owners = next
    for (const slot of verifiedSlots) dropOthers(slot)
    refreshedMs = now()
    isSuspect = false
    forgetOthers()
  }

  function countPromotions(next: readonly SlotRange[]): void {
    const before = new Set(table.map(({ master }) => master.id))
    const replicas = new Set(table.flatMap((range) => range.replicas.map(({ id }) => id)))
    const masters = new Map(next.map(({ master }) => [master.id, addressOf(master.server)]))
    for (const [id, address] of masters) {
      if (before.has(id) || !replicas.has(id)) continue
      promotions += 1
      onPromotion(address)
    }
  }

  /** A node that loses a slot, and gets it back, may have lost its keys in between. */
  function dropOthers(slot: number): void {
    for (const node of nodes.values()) if (owners[slot] !== node) covered.get(node)?.delete(slot)
  }

  const isVerified = (node: ClusterNode, slot: number): boolean =>
    !toVerify.has(slot) || (node.isBelieved() && (covered.get(node)?.has(slot) ?? false))

  /** The slots are those at the time of the check: one that comes meanwhile is not covered. */
  async function cover(node: ClusterNode, owns: (slot: number) => boolean): Promise<void> {
    const slots = verifiedSlots.filter(owns)
    covered.delete(node)
    const checked = new Set(slots)
    await verify(node, (slot) => checked.has(slot))
    covered.set(node, new Set(slots.filter((slot) => owners[slot] === node)))
  }

  /** Verifies a believed node that has gained a slot. Concurrent callers share the check. */
  function coverGained(node: ClusterNode, slot: number): Promise<void> {
    const name = `${node.address} ${slot}`
    const known = verifying.get(name)
    if (known !== undefined) return known
    const [first] = verifiedSlots
    // The first slot has the facts for the others.
    const withFirst = first !== undefined && owners[first] === node
    const work = verify(node, (each) => each === slot || (withFirst && each === first))
      .then(() => {
        if (owners[slot] === node) covered.set(node, (covered.get(node) ?? new Set()).add(slot))
      })
      .finally(() => verifying.delete(name))
    verifying.set(name, work)
    return work
  }

  /** Closes nodes that are neither in the cluster nor in the URL. */
  function forgetOthers(): void {
    const current = new Set([...entries().map(({ server }) => addressOf(server)), ...seeds])
    for (const [address, node] of nodes) {
      if (current.has(address)) continue
      nodes.delete(address)
      setTimeout(node.close, LINGER_MS).unref()
    }
  }

  /** Asks believed masters, or else every node. */
  async function ask(): Promise<View> {
    const believed = masters.filter((node) => node.isBelieved())
    const asked =
      believed.length > 0
        ? shuffled(believed).slice(0, ASKED_AT_ONCE)
        : [...entries().map(({ server }) => server), ...target.servers].map(nodeAt)
    return firstOf([...new Set(asked)].map(viewOf))
  }

  function refresh(): Promise<void> {
    start()
    refreshing ??= ask()
      .then(use)
      .catch((cause) => {
        failure = cause
        throw cause
      })
      .finally(() => {
        refreshing = undefined
      })
    return refreshing
  }

  /** Throws if no other node says that `node` owns slots. Uses what the other node reports. */
  async function confirm(node: ClusterNode): Promise<void> {
    const others = entries().filter(({ server }) => addressOf(server) !== node.address)
    // A service behind one address has no other node, and replaces its servers itself.
    if (others.length === 0) return cover(node, (slot) => owners[slot] === node)
    const isOfMaster = new Set(table.map(({ master }) => master.id))
    const preferred = others.filter(({ id }) => isOfMaster.has(id))
    const asked = preferred.length > 0 ? preferred : others
    const view = await firstOf([...new Set(asked.map(({ server }) => nodeAt(server)))].map(viewOf))
    use(view)
    const own = view.ranges.filter(({ master }) => addressOf(master.server) === node.address)
    if (own.length === 0) throw new LostSlots()
    if (own.some(({ master, replicas }) => replicas.length > 0 && hasFailed(view, master)))
      throw new Error('another node says that the master has failed')
    await cover(node, (slot) => own.some(({ from, to }) => from <= slot && slot <= to))
  }

  function suspect(): void {
    isSuspect = true
    if (now() - refreshedMs >= LEAST_REFRESH_MS) refresh().catch(() => {})
  }

  function start(): void {
    if (isClosed) return
    const isFenced = Number.isFinite(fenceMs)
    timer ??= setInterval(tick, isFenced ? tickMsOf(fenceMs) : DEFAULT_TICK_MS).unref()
  }

  function tick(): void {
    for (const node of masters) node.tick()
    const isDue = now() - refreshedMs >= REFRESH_MS
    const isUncertain = isSuspect || masters.some((node) => !node.isBelieved())
    if (isDue || isUncertain) refresh().catch(() => {})
    onTick()
  }

  return {
    /** Returns the owner of a slot as far as it is known. */
    ownerOf: (slot: number): ClusterNode | undefined => owners[slot],
    /** Finds the owner of a slot. Throws why it cannot be found. */
    async find(slot: number): Promise<ClusterNode> {
      await refresh()
      const owner = owners[slot]
      if (owner === undefined) throw new Error('no node owns the slot')
      return owner
    },
    /** Returns the node at an address, also if it owns no slot. */
    nodeAt,
    /** A node says that another one owns a slot. */
    moved(slot: number, server: RedisServer): ClusterNode {
      const node = nodeAt(server)
      owners[slot] = node
      dropOthers(slot)
      suspect()
      return node
    },
    /** Whether a node is believed, and was verified as the owner of the slot since it was last proven. */
    isVerified,
    /** Proves the node, and verifies it as the owner of the slot. Throws why it must not be used. */
    async verified(node: ClusterNode, slot: number): Promise<void> {
      await node.proved()
      if (!isVerified(node, slot)) await coverGained(node, slot)
    },
    /** Something failed: asks the cluster who owns which slots, in the background. */
    suspect,
    /** Asks the cluster who owns which slots. Throws why no node answers. */
    refresh,
    /** The slots as the cluster last reported them. */
    ranges: (): readonly SlotRange[] => table,
    /** All nodes that own slots. */
    masters: (): readonly ClusterNode[] => masters,
    /** Returns how often a replica was seen to have become a master. */
    promotions: (): number => promotions,
    /** Whether the node that was last asked reaches this one, or is this one. */
    isReachedByOthers(node: ClusterNode): boolean {
      const entry = entries().find(({ server }) => addressOf(server) === node.address)
      return entry !== undefined && isConnected(reported, entry)
    },
    /** Returns why no node said who owns which slots, the last time. Undefined: one did. */
    failure: (): unknown => failure,
    close(): void {
      isClosed = true
      clearInterval(timer)
      for (const node of nodes.values()) node.close()
    },
  }
}

/** Another node owns the slots of a master that had been silent. No command was sent to it. */
export class LostSlots extends Error {
  override readonly name = 'LostSlots'
  constructor() {
    super('another node owns the slots of the master')
  }
}

/** The host of the URL, if it is a name: managed services have certificates for it. */
const nameIn = ({ servers }: RedisTarget): string | undefined =>
  servers.map(({ host }) => host).find((host) => /[a-z]/i.test(host) && !host.includes(':'))

/** Returns the first success. Throws an error that an operator can correct, or else the error of the last attempt. */
async function firstOf<Value>(attempts: readonly Promise<Value>[]): Promise<Value> {
  try {
    return await Promise.any(attempts)
  } catch (error) {
    if (!(error instanceof AggregateError)) throw error
    const mistake = error.errors.find((cause) => findMistake(cause) !== undefined)
    throw mistake ?? error.errors.at(-1) ?? error
  }
}

function shuffled<Item>(items: readonly Item[]): Item[] {
  return items
    .map((item) => ({ item, order: Math.random() }))
    .sort((one, other) => one.order - other.order)
    .map(({ item }) => item)
}

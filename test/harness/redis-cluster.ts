/** A real Redis Cluster on loopback, without persistence, whose nodes a test can pause and kill. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Redis } from 'ioredis'
import { type Gate, type GateOptions, startGate } from './gate.ts'
import { freePort } from './process.ts'
import { directTo, startRealServer } from './resp-server.ts'

/** How long a master must be silent before its replica takes its place. */
export const NODE_TIMEOUT_MS = 2_000
const SLOTS = 16_384
const POLL_MS = 20
/** A cluster that takes longer never forms. */
const FORMED_WITHIN_MS = 30_000

/** Where gateways reach the nodes of a cluster with gates. Nodes reach each other at other addresses. */
const GATE_HOST = '127.0.0.2'

/** The proxies before one node. A partition of the network is a gate that lets bytes wait. */
export interface NodeGates {
  /** Before the connections of gateways. */
  readonly clients: Gate
  /** Before those of other nodes: the bus of the cluster, and replication. */
  readonly peers: readonly [bus: Gate, replication: Gate]
  /** The address from which this node calls others. */
  readonly source: string
}

export interface ClusterNode {
  /** Undefined without `gates`. */
  readonly gates: NodeGates | undefined
  readonly port: number
  /** Undefined without `tls`. */
  readonly tlsPort: number | undefined
  /** The id of the node in the cluster. */
  readonly id: string
  /** A direct connection to this node only. It fails while the node is paused. */
  readonly direct: Redis
  /** Stops the process without closing its sockets, as a stalled machine does (SIGSTOP). */
  pause(): void
  resume(): void
  /** Ends the process at once (SIGKILL). */
  kill(): Promise<void>
  /** Starts it again, empty, as the same node of the cluster. */
  restart(): Promise<void>
}

export interface TestCluster {
  /** `redis+cluster://` with the addresses of all masters; with `gates` those of their gates. */
  readonly url: string
  readonly host: string
  /** The masters at the start, each with a third of the slots, in their order. */
  readonly masters: readonly ClusterNode[]
  /** The replicas at the start: the first replica of each master first. */
  readonly replicas: readonly ClusterNode[]
  readonly nodes: readonly ClusterNode[]
  /** Returns the master that owns a slot, as `through` sees it. Default: the first master. */
  ownerOf(slot: number, through?: ClusterNode): Promise<ClusterNode | undefined>
  /** Resolves when every node that is `alive` sees all slots owned by masters that are alive. */
  settled(alive?: readonly ClusterNode[]): Promise<void>
  /** Deletes all keys. */
  flush(): Promise<void>
  close(): Promise<void>
}

export interface ClusterOptions {
  /** Default 3. */
  readonly masters?: number
  /** Replicas of each master. Default 1. */
  readonly replicas?: number
  /** Further arguments of each `redis-server`. */
  readonly args?: readonly string[]
  /** The address that nodes listen on and report. Default `127.0.0.1`. */
  readonly host?: string
  /** The folder with `ca.pem` and the certificate `name` (`certificate.ts`). Default: no TLS. */
  readonly tls?: { readonly folder: string; readonly name: string } | undefined
  /** Starts proxies before each node. `onCommands` gets those of gateways: see `startGate`. */
  readonly gates?: Pick<GateOptions, 'onCommands'> | undefined
}

/** Starts a cluster and waits until all nodes agree about it. */
export async function startRedisCluster({
  masters: count = 3,
  replicas: each = 1,
  args = [],
  host = '127.0.0.1',
  tls,
  gates,
}: ClusterOptions = {}): Promise<TestCluster> {
  const folder = mkdtempSync(join(tmpdir(), 'cluster-'))
  const started = await Promise.all(
    Array.from({ length: count * (1 + each) }, (_, number) =>
      startNode(folder, { args, host, tls, gates }, number),
    ),
  )
  const nodes = started.map(({ node }) => node)
  const masters = nodes.slice(0, count)
  const replicas = nodes.slice(count)
  const [first] = nodes
  if (first === undefined) throw new Error('a cluster needs a node')

  const settled: TestCluster['settled'] = (alive = nodes) =>
    until(async () => {
      const views = await Promise.all(alive.map(({ direct }) => ownersSeenBy(direct)))
      const ids = new Set(alive.map(({ id }) => id))
      return views.every(
        ({ isOk, slots, owners }) => isOk && slots === SLOTS && owners.every((id) => ids.has(id)),
      )
    })

  const cluster: TestCluster = {
    url: `redis+cluster://${masters
      .map(({ port, gates: own }) =>
        own === undefined
          ? `${host.includes(':') ? `[${host}]` : host}:${port}`
          : `${GATE_HOST}:${own.clients.port}`,
      )
      .join(',')}`,
    host,
    masters,
    replicas,
    nodes,
    async ownerOf(slot, through = first) {
      const ranges = await slotsSeenBy(through.direct)
      const owner = ranges.find(([from, to]) => from <= slot && slot <= to)?.[2][2]
      return nodes.find(({ id }) => id === owner)
    },
    settled,
    async flush() {
      for (const { direct } of nodes)
        await direct.flushall().catch((error: Error) => {
          if (!error.message.startsWith('READONLY')) throw error
        })
    },
    async close() {
      for (const { node } of started) {
        node.resume()
        node.direct.disconnect()
        await node.kill()
        for (const gate of gatesOf(node)) await gate.close()
      }
      rmSync(folder, { recursive: true, force: true })
    },
  }

  try {
    await Promise.all(masters.map(({ direct }, at) => direct.cluster('SET-CONFIG-EPOCH', at + 1)))
    await Promise.all(
      masters.map(({ direct }, at) => {
        const from = Math.floor((at * SLOTS) / count)
        const to = Math.floor(((at + 1) * SLOTS) / count) - 1
        return direct.call('CLUSTER', 'ADDSLOTSRANGE', from, to)
      }),
    )
    // Every node meets every other one: gossip alone takes seconds.
    await Promise.all(
      nodes.map(({ direct }) =>
        Promise.all(
          started
            .filter(({ node }) => node.direct !== direct)
            .map(({ node, busPort }) => {
              const [bus, replication] = node.gates?.peers ?? []
              const port = replication?.port ?? node.tlsPort ?? node.port
              return direct.call('CLUSTER', 'MEET', host, port, bus?.port ?? busPort)
            }),
        ),
      ),
    )
    await until(async () => {
      const views = await Promise.all(
        nodes.map(async ({ direct }) => String(await direct.cluster('NODES'))),
      )
      return views.every((view) => nodes.every(({ id }) => view.includes(id)))
    })
    await Promise.all(
      replicas.map(({ direct }, at) => direct.cluster('REPLICATE', masters[at % count]?.id ?? '')),
    )
    await settled()
    await until(async () => {
      const infos = await Promise.all(replicas.map(({ direct }) => direct.info('replication')))
      return infos.every((info) => info.includes('master_link_status:up'))
    })
    // A replica is listed once its master has sent it something.
    await until(async () => {
      const views = await Promise.all(nodes.map(({ direct }) => slotsSeenBy(direct)))
      return views.every((ranges) => ranges.every((range) => range.length === 3 + each))
    })
    return cluster
  } catch (error) {
    await cluster.close()
    throw error
  }
}

/** Moves a slot and its keys from its master to another one, and calls `midway` while it is moving. */
export async function moveSlot(
  { masters, ownerOf, host }: TestCluster,
  slot: number,
  to: ClusterNode,
  midway: () => Promise<void> = async () => {},
): Promise<void> {
  const from = await ownerOf(slot)
  if (from === undefined || from === to) throw new Error(`slot ${slot} cannot be moved`)
  await to.direct.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', from.id)
  await from.direct.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', to.id)
  await midway()
  for (;;) {
    const keys = (await from.direct.call('CLUSTER', 'GETKEYSINSLOT', slot, 100)) as string[]
    if (keys.length === 0) break
    await from.direct.call('MIGRATE', host, to.port, '', 0, 5_000, 'KEYS', ...keys)
  }
  for (const node of [to, from, ...masters.filter((each) => each !== to && each !== from)])
    await node.direct.call('CLUSTER', 'SETSLOT', slot, 'NODE', to.id)
}

interface StartedNode {
  readonly node: ClusterNode
  readonly busPort: number
}

async function startNode(
  folder: string,
  {
    args,
    host,
    tls,
    gates: wanted,
  }: Required<Pick<ClusterOptions, 'args' | 'host'>> & Pick<ClusterOptions, 'tls' | 'gates'>,
  number: number,
): Promise<StartedNode> {
  const [port, busPort] = [await freePort(), await freePort()]
  const gates = wanted && (await startGates({ port, busPort, number, ...wanted }))
  const announced = gates === undefined ? [] : announcing(gates)
  const tlsPort = tls && (await freePort())
  const withTls =
    tls === undefined
      ? []
      : [
          ...['--tls-port', String(tlsPort), '--tls-cluster', 'yes', '--tls-auth-clients', 'no'],
          ...['--tls-cert-file', join(tls.folder, `${tls.name}.pem`)],
          ...['--tls-key-file', join(tls.folder, `${tls.name}.key`)],
          ...['--tls-ca-cert-file', join(tls.folder, 'ca.pem')],
        ]
  const start = () =>
    startRealServer(
      [
        ...['--dir', folder, '--cluster-enabled', 'yes', '--cluster-port', String(busPort)],
        ...['--cluster-config-file', `nodes-${port}.conf`, '--appendonly', 'no'],
        ...['--cluster-node-timeout', String(NODE_TIMEOUT_MS)],
        ...['--cluster-require-full-coverage', 'no', '--maxmemory', '256mb'],
        ...['--repl-diskless-sync-delay', '0', '--repl-ping-replica-period', '1'],
        ...[...withTls, ...announced, ...args],
      ],
      port,
      host,
    )
  let server = await start()
  const direct = directTo(port, undefined, host)
  const id = await direct.cluster('MYID')
  const node: ClusterNode = {
    gates,
    port,
    tlsPort,
    id: String(id),
    direct,
    pause: () => void server.process.kill('SIGSTOP'),
    resume: () => void server.process.kill('SIGCONT'),
    kill: () => server.close(),
    async restart() {
      server = await start()
    },
  }
  return { node, busPort }
}

async function startGates({
  port,
  busPort,
  number,
  onCommands,
}: NonNullable<ClusterOptions['gates']> & {
  readonly port: number
  readonly busPort: number
  readonly number: number
}): Promise<NodeGates> {
  const [announced, host] = [await freePort(), '127.0.0.1']
  return {
    clients: await startGate({
      ...{ host: GATE_HOST, port: announced, target: port, isOfClients: true },
      ...(onCommands && { onCommands }),
    }),
    peers: [
      await startGate({ host, port: await freePort(), target: busPort }),
      await startGate({ host, port: announced, target: port }),
    ],
    source: `127.0.1.${number + 1}`,
  }
}

/** Clients get the name, and nodes use the address: so both reach the node through their own gates. */
const announcing = ({ clients, peers: [bus], source }: NodeGates): readonly string[] => [
  ...['--cluster-announce-hostname', GATE_HOST, '--cluster-preferred-endpoint-type', 'hostname'],
  ...['--cluster-announce-port', String(clients.port)],
  ...['--cluster-announce-bus-port', String(bus.port), '--bind-source-addr', source],
]

const gatesOf = ({ gates }: ClusterNode): readonly Gate[] =>
  gates === undefined ? [] : [gates.clients, ...gates.peers]

/**
 * Cuts the network between nodes of a cluster with gates: between each node of `island` and all others. Returns
 * a function that heals it.
 */
export function partition({ nodes }: TestCluster, island: readonly ClusterNode[]): () => void {
  const isOnIsland = new Map(nodes.map((node) => [node.gates?.source, island.includes(node)]))
  const set = (isCut: boolean) => {
    for (const node of nodes) {
      const own = island.includes(node)
      const isAcross = (from: string) => isCut && (isOnIsland.get(from) ?? own) !== own
      for (const gate of node.gates?.peers ?? [])
        gate.set((from) => (isAcross(from) ? 'hang' : 'serve'))
    }
  }
  set(true)
  return () => set(false)
}

type SlotRange = [from: number, to: number, master: [host: string, port: number, id: string]]

const slotsSeenBy = async (direct: Redis) => (await direct.call('CLUSTER', 'SLOTS')) as SlotRange[]
const infoOf = async (direct: Redis) => String(await direct.cluster('INFO'))

async function ownersSeenBy(direct: Redis) {
  const ranges = await slotsSeenBy(direct)
  return {
    isOk: (await infoOf(direct)).includes('cluster_state:ok'),
    slots: ranges.reduce((sum, [from, to]) => sum + to - from + 1, 0),
    owners: ranges.map(([, , [, , id]]) => id),
  }
}

async function until(isTrue: () => Promise<boolean>): Promise<void> {
  const endMs = Date.now() + FORMED_WITHIN_MS
  while (!(await isTrue())) {
    if (Date.now() > endMs) throw new Error('the cluster does not settle')
    await sleep(POLL_MS)
  }
}

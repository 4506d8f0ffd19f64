/** What a cluster must be so that no revocation is lost, as far as its nodes report it. */
import { type Mistake, textOf } from '../../../../problems/mistake.ts'
import { redisMistake } from '../socket/resp-client.ts'
import { UnusableServer } from '../socket/server-info.ts'
import type { ClusterNode, ClusterRouter } from './router.ts'
import { addressOf } from './slot-table.ts'

export interface ClusterRequirements {
  readonly fenceMs: number
  readonly timeoutMs: number
  readonly replicasAcked: number
  readonly acceptsEviction: boolean
}

export interface Findings {
  readonly mistakes: readonly Mistake[]
  readonly warnings: readonly string[]
}

interface NodeFindings extends Findings {
  /** Whether a revocation could be lost, or a replaced master be believed. */
  readonly isUnsafe: boolean
}

/** Settings of a master would lose revocations. {@link ClusterChecks.findings} has them. */
export class UnsafeSettings extends UnusableServer {
  constructor() {
    super('a master has settings that lose revocations')
  }
}

export type ClusterChecks = ReturnType<typeof createClusterChecks>

/** How often the settings of a master that is believed are read, in milliseconds. */
export const RENEWED_MS = 30_000

const SETTINGS = [
  'cluster-node-timeout',
  'maxmemory-policy',
  'cluster-require-full-coverage',
  'cluster-allow-reads-when-down',
] as const
type Setting = (typeof SETTINGS)[number]

const UNREADABLE: NodeFindings = {
  isUnsafe: false,
  mistakes: [],
  warnings: [
    'REDIS_URL: the user may not run CONFIG GET, so the settings of the cluster were not checked; allow +config|get behind -@dangerous',
  ],
}

/**
 * Creates the checks. A user without the right to read settings gets a warning. The settings of a master
 * that does not answer are checked when it does, before any of its replies is used.
 */
export function createClusterChecks(
  router: Pick<ClusterRouter, 'masters' | 'ranges'>,
  requirements: ClusterRequirements,
  now: () => number = () => performance.now(),
) {
  const found = new Map<string, NodeFindings>()
  const checkedMs = new WeakMap<ClusterNode, number>()

  async function require(node: ClusterNode): Promise<void> {
    checkedMs.set(node, now())
    const settings = await settingsOf(node)
    const findings = settings === 'refused' ? UNREADABLE : findingsOf(settings, requirements)
    found.set(node.address, findings)
    if (findings.isUnsafe) throw new UnsafeSettings()
  }

  return {
    /** Reads the settings of a master, at each proof. Throws `UnsafeSettings`, and if it does not answer. */
    require,
    /** Reads the settings of believed masters again if {@link RENEWED_MS} have passed. Believes none that became unsafe. */
    renew(): void {
      for (const node of router.masters()) {
        const sinceMs = now() - (checkedMs.get(node) ?? Number.NEGATIVE_INFINITY)
        if (!node.isBelieved() || sinceMs < RENEWED_MS) continue
        // One that does not answer is the concern of the fence.
        require(node).catch((cause) => {
          if (cause instanceof UnsafeSettings) node.disbelieve()
        })
      }
    },
    /** Returns what is known about all masters now, each finding once. */
    findings(): Findings {
      const ofMasters = router.masters().flatMap(({ address }) => found.get(address) ?? [])
      const all: readonly Findings[] = [...ofMasters, replicasOf(router, requirements)]
      return {
        mistakes: unique(
          all.flatMap(({ mistakes }) => mistakes),
          textOf,
        ),
        warnings: [...new Set(all.flatMap(({ warnings }) => warnings))],
      }
    },
  }
}

async function settingsOf(node: ClusterNode): Promise<ReadonlyMap<Setting, string> | 'refused'> {
  const replies = await node.query(SETTINGS.map((name) => ['CONFIG', 'GET', name]))
  if (replies.some(({ error }) => error !== undefined)) return 'refused'
  const values = SETTINGS.flatMap((name, at): [Setting, string][] => {
    const result = replies[at]?.result
    const value: unknown = Array.isArray(result) ? result[1] : undefined
    return typeof value === 'string' ? [[name, value]] : []
  })
  return new Map(values)
}

function findingsOf(
  settings: ReadonlyMap<Setting, string>,
  { fenceMs, timeoutMs, acceptsEviction }: ClusterRequirements,
): NodeFindings {
  const mistakes: Mistake[] = []
  const warnings: string[] = []
  const nodeTimeoutMs = Number(settings.get('cluster-node-timeout') ?? Number.POSITIVE_INFINITY)
  // Without a fence there is no proof to protect: only in tests.
  if (Number.isFinite(fenceMs) && fenceMs + timeoutMs >= nodeTimeoutMs)
    mistakes.push(
      redisMistake(
        `${fenceMs} ms and the deadline of ${timeoutMs} ms must be less than cluster-node-timeout, which is ${nodeTimeoutMs} ms: ` +
          'a replaced master could be believed; set a smaller value, or a longer node timeout',
        'REDIS_FENCE_MS',
      ),
    )
  const policy = settings.get('maxmemory-policy') ?? 'noeviction'
  if (policy !== 'noeviction') {
    const text = `the cluster has maxmemory-policy ${policy}, and an evicted revocation is lost`
    if (acceptsEviction) warnings.push(`REDIS_EVICTION: ${text}`)
    else
      mistakes.push(
        redisMistake(`${text}; set noeviction, or accept the loss with REDIS_EVICTION=accepted`),
      )
  }
  if (settings.get('cluster-allow-reads-when-down') === 'yes')
    mistakes.push(
      redisMistake(
        'the cluster has cluster-allow-reads-when-down yes, so that a master without the others answers calls; set it to no',
      ),
    )
  const isUnsafe = mistakes.length > 0
  // Other masters answer until one fails.
  if (settings.get('cluster-require-full-coverage') === 'yes')
    mistakes.push(
      redisMistake(
        'the cluster has cluster-require-full-coverage yes, so that one failed master stops all of them; set it to no',
      ),
    )
  return { mistakes, warnings, isUnsafe }
}

/** After a failover a master has no replica for a while. A gateway that restarts then must start. */
function replicasOf(
  router: Pick<ClusterRouter, 'ranges'>,
  { replicasAcked }: ClusterRequirements,
): Findings {
  const ranges = router.ranges()
  const poor = ranges.filter(({ replicas }) => replicas.length < replicasAcked)
  const [first] = poor
  if (first === undefined) return { mistakes: [], warnings: [] }
  const master = addressOf(first.master.server)
  const found = `${replicasAcked} must have a revocation, and the master ${master} has ${first.replicas.length}`
  if (poor.length < ranges.length)
    return { mistakes: [], warnings: [`REDIS_REPLICAS_ACKED: ${found}: revocations fail there`] }
  const remedy = 'add replicas, or set a smaller number; with 0 a failover may lose revocations'
  return { mistakes: [redisMistake(`${found}; ${remedy}`, 'REDIS_REPLICAS_ACKED')], warnings: [] }
}

const unique = <Item>(items: readonly Item[], textOf: (item: Item) => string): readonly Item[] => [
  ...new Map(items.map((item) => [textOf(item), item])).values(),
]

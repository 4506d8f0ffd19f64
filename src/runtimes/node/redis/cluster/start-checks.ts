/** What a cluster must be so that no revocation is lost, as far as its nodes report it. */
import type { Mistake } from '../../../../problems/mistake.ts'
import type { RedisReply } from '../../../../redis/connection.ts'
import { redisMistake } from '../socket/resp-client.ts'
import type { ClusterNode, ClusterRouter } from './router.ts'
import { addressOf } from './slot-table.ts'

export interface ClusterRequirements {
  readonly fenceMs: number
  readonly timeoutMs: number
  readonly replicasAcked: number
  readonly acceptsEviction: boolean
}

interface Findings {
  readonly mistakes: readonly Mistake[]
  readonly warnings: readonly string[]
}

const SETTINGS = [
  'cluster-node-timeout',
  'maxmemory-policy',
  'cluster-require-full-coverage',
  'cluster-allow-reads-when-down',
] as const
type Setting = (typeof SETTINGS)[number]

const UNREADABLE: Findings = {
  mistakes: [],
  warnings: [
    'REDIS_URL: the user may not run CONFIG GET, so the settings of the cluster were not checked; allow +config|get behind -@dangerous',
  ],
}

/** Reads the settings of all masters that answer. A user without the right to read them gets a warning. */
export async function clusterFindings(
  router: ClusterRouter,
  requirements: ClusterRequirements,
): Promise<Findings> {
  const found = await Promise.all(
    router.masters().map(async (node) => {
      const settings = await settingsOf(node)
      return settings === 'refused' ? UNREADABLE : findingsOf(settings, requirements)
    }),
  )
  const all = [...found, replicasOf(router, requirements)]
  return {
    mistakes: unique(
      all.flatMap(({ mistakes }) => mistakes),
      ({ message }) => message,
    ),
    warnings: unique(
      all.flatMap(({ warnings }) => warnings),
      (text) => text,
    ),
  }
}

async function settingsOf(node: ClusterNode): Promise<ReadonlyMap<Setting, string> | 'refused'> {
  const replies = await node
    .query(SETTINGS.map((name) => ['CONFIG', 'GET', name]))
    .catch((): readonly RedisReply[] => [])
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
): Findings {
  const mistakes: Mistake[] = []
  const warnings: string[] = []
  const nodeTimeoutMs = Number(settings.get('cluster-node-timeout') ?? Number.POSITIVE_INFINITY)
  if (fenceMs + timeoutMs >= nodeTimeoutMs)
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
  if (settings.get('cluster-require-full-coverage') === 'yes')
    mistakes.push(
      redisMistake(
        'the cluster has cluster-require-full-coverage yes, so that one failed master stops all of them; set it to no',
      ),
    )
  if (settings.get('cluster-allow-reads-when-down') === 'yes')
    mistakes.push(
      redisMistake(
        'the cluster has cluster-allow-reads-when-down yes, so that a master without the others answers calls; set it to no',
      ),
    )
  return { mistakes, warnings }
}

/** After a failover a master has no replica for a while. A gateway that restarts then must start. */
function replicasOf(router: ClusterRouter, { replicasAcked }: ClusterRequirements): Findings {
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

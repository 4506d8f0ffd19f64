/** The state of an import on the cluster: where it comes from, which keys it has written, and its end. */
import type { RedisConnection } from '../../../../redis/connection.ts'
import { clusterKeys, replicationKeys } from '../../../../redis/keys.ts'
import { readCount, readList, readResult, readText, sendCommand } from '../../../../redis/reply.ts'
import { kindOf } from './kinds.ts'
import type { Cluster } from './places.ts'

/** Why a cluster is not a target. */
export type Refusal = 'other_origin' | 'ended'

const SCANNED_AT_ONCE = 1_000

/** Calls `work` with the names that begin with the prefix of a connection, without it. */
export async function eachNames(
  { keys: { prefix }, send }: RedisConnection,
  work: (names: readonly string[]) => Promise<boolean>,
  atOnce = SCANNED_AT_ONCE,
): Promise<void> {
  const pattern = `${prefix.replace(/[\\*?[\]]/g, '\\$&')}*`
  let cursor = '0'
  do {
    const [reply] = await send([['SCAN', cursor, 'MATCH', pattern, 'COUNT', atOnce]])
    const [next, found] = readList(readResult(reply), 2)
    cursor = readText(next)
    const names = readList(found).map((key) => readText(key).slice(prefix.length))
    if (names.length > 0 && !(await work(names))) return
  } while (cursor !== '0')
}

/**
 * Returns why the cluster is refused. Undefined: it is empty but for what a start writes, or has the
 * keys of an unfinished import from `source` that has merged nothing.
 */
export async function findRefusal(cluster: Cluster, source: string): Promise<Refusal | undefined> {
  const { importState } = clusterKeys(cluster.keys)
  const [known, ended, merged] = readList(
    await sendCommand(cluster, ['HMGET', importState, 'source', 'ended', 'merged']),
    3,
  )
  if (known !== null && (known !== source || merged !== null)) return 'other_origin'
  if (known !== null) return ended === null ? undefined : 'ended'
  for (const lane of [cluster, ...cluster.lanes.all])
    if (await hasKeysOfGateways(lane)) return 'other_origin'
  return undefined
}

async function hasKeysOfGateways(lane: RedisConnection): Promise<boolean> {
  let isFound = false
  await eachNames(lane, async (names) => {
    isFound = names.some((name) => {
      const rule = kindOf(name)?.rule
      return rule === undefined || !('skip' in rule)
    })
    return !isFound
  })
  return isFound
}

/** Stores where an import comes from, and whether it keeps keys of another origin. */
export async function begin(cluster: Cluster, source: string, merges: boolean): Promise<void> {
  const { importState } = clusterKeys(cluster.keys)
  const fields = ['source', source, ...(merges ? ['merged', '1'] : [])]
  const replies = await cluster.send([
    ['HSET', importState, ...fields],
    ['HDEL', importState, 'ended'],
  ])
  replies.forEach(readResult)
}

/** No further import may replace what gateways write from now on. */
export async function end(cluster: Cluster, nowMs: number): Promise<void> {
  const { importState, imported } = clusterKeys(cluster.keys)
  const replies = await cluster.send([
    ['HSET', importState, 'ended', Math.floor(nowMs / 1000)],
    ['UNLINK', imported],
  ])
  replies.forEach(readResult)
}

/** Returns how many facts some lanes may not have yet. */
export async function pendingFacts(cluster: Cluster): Promise<number> {
  const { pendingFacts: key } = replicationKeys(cluster.keys)
  return readCount(await sendCommand(cluster, ['ZCARD', key]))
}

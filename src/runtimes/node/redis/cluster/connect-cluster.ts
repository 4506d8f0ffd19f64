/** The client for a Redis Cluster: a connection for each lane, and sockets that all of them share. */
import { setTimeout as sleep } from 'node:timers/promises'
import { withBroadcast } from '../../../../access/revocation/redis/broadcast.ts'
import { Misconfigured, Unavailable } from '../../../../errors.ts'
import { DEFAULT_REDIS_TIMEOUT_MS, type RedisCallOptions } from '../../../../redis/bounded-calls.ts'
import type { RedisConnection } from '../../../../redis/connection.ts'
import {
  clusterKeys,
  createKeys,
  DEFAULT_KEY_PREFIX,
  replicationKeys,
} from '../../../../redis/keys.ts'
import { CONTROL_TAG, createLanes, laneTags, tagSlot } from '../../../../redis/lanes.ts'
import type { RedisTarget } from '../../environment/redis-url.ts'
import { acknowledgedSend } from '../socket/acknowledged.ts'
import { findMistake } from '../socket/faults.ts'
import {
  DEFAULT_FENCE_MS,
  type RespClient,
  type RespOptions,
  redisMistake,
} from '../socket/resp-client.ts'
import { clusterCalls } from './calls.ts'
import { secretDigest } from './digest.ts'
import { createLaneMarkers, OtherLanes } from './lane-markers.ts'
import { createClusterProblems } from './problems.ts'
import { createClusterRouter } from './router.ts'
import { createClusterChecks, UnsafeSettings } from './start-checks.ts'

export interface ClusterTarget extends RedisTarget {
  readonly lanes: number
}

const DEFAULT_REPLICAS_ACKED = 1
/** For deadlines that are shorter: a socket is replaced after so long without a reply to any call. */
const MIN_SILENCE_MS = 2_000
/** How often facts are completed, as by a gateway. */
const COMPLETE_EVERY_MS = 2_000
/** Bounds the checks of the start. Without answers the gateway starts, and refuses calls until they come. */
const CHECK_TIMEOUT_MS = 3_000

/**
 * Creates the client. It connects when the first call needs it. No lane sends a call before the number
 * of lanes has been compared with the stored one: with another number, a gateway would look for
 * revocations in the wrong places.
 */
export function connectCluster(
  target: ClusterTarget,
  {
    keyPrefix = DEFAULT_KEY_PREFIX,
    timeoutMs = DEFAULT_REDIS_TIMEOUT_MS,
    fenceMs = DEFAULT_FENCE_MS,
    replicasAcked = DEFAULT_REPLICAS_ACKED,
    acceptsEviction = false,
    completesFacts = false,
    isBackground = false,
  }: Omit<RespOptions, 'url'>,
): RespClient {
  const silenceMs = Math.max(timeoutMs, MIN_SILENCE_MS)
  const checking = { timeoutMs: CHECK_TIMEOUT_MS }
  const router = createClusterRouter({
    target,
    silenceMs,
    fenceMs,
    async verify(node, owns) {
      const [settings, keys] = await Promise.allSettled([
        checks.require(node),
        markers.verify(node, owns),
      ])
      for (const result of [settings, keys]) if (result.status === 'rejected') throw result.reason
    },
    onPromotion: (address) =>
      console.error(`Redis Cluster: the replica ${address} has become a master`),
    onTick() {
      checks.renew()
      problems.report()
    },
    verifiedSlots: [CONTROL_TAG, ...laneTags(target.lanes)].map(tagSlot),
  })
  const checks = createClusterChecks(router, {
    ...{ fenceMs, replicasAcked, acceptsEviction },
    timeoutMs: isBackground ? 0 : timeoutMs,
  })
  const problems = createClusterProblems({
    router,
    checks,
    log: (text) => console.error(text),
    now: () => performance.now(),
  })
  const control = createKeys(`${keyPrefix}{${CONTROL_TAG}}:`)
  const stored = storedLanes(
    target.lanes,
    clusterKeys(control).lanes,
    clusterCalls(
      router,
      checking,
    )({
      slot: tagSlot(CONTROL_TAG),
      prefix: control.prefix,
      isWriter: false,
    }),
    async () => {
      await markers.mark()
      if (completesFacts) completing ??= setInterval(complete, COMPLETE_EVERY_MS).unref()
    },
  )
  let completing: NodeJS.Timeout | undefined
  // A lane that cannot be reached gets them in a later run.
  const complete = () => void unchecked.broadcast.complete(() => Date.now()).catch(() => {})

  const connect = (calls: RedisCallOptions, isChecked = true) => {
    const sendTo = clusterCalls(router, calls, problems.circled)
    const connection = createLanes({
      prefix: keyPrefix,
      count: target.lanes,
      credentialsInControl: target.credentialsInControl,
      digest: secretDigest,
      connect: (keys, slot) => {
        const { prefix } = keys
        const send = acknowledgedSend(
          sendTo({ slot, prefix, isWriter: false }),
          sendTo({ slot, prefix, isWriter: true }),
          calls.timeoutMs ?? DEFAULT_REDIS_TIMEOUT_MS,
        )
        return {
          keys,
          keyLocking: false,
          replicasAcked,
          send: (commands, options) =>
            !isChecked || stored.isEqual()
              ? send(commands, options)
              : stored.compared().then(() => send(commands, options)),
        }
      },
    })
    return withBroadcast(connection)
  }
  const unchecked = connect(checking, false)
  const markers = createLaneMarkers({
    keyPrefix,
    lanes: target.lanes,
    connectionOf: (number) =>
      (number === undefined ? unchecked : unchecked.lanes.all[number]) ?? unchecked,
    masters: router.masters,
    nodeAt: router.nodeAt,
    warn: (text) => console.error(text),
    now: () => Date.now(),
  })

  return {
    connect: (calls) => connect(calls),
    async check() {
      try {
        await within(CHECK_TIMEOUT_MS, router.refresh())
      } catch (cause) {
        const mistake = findMistake(cause)
        if (mistake === undefined) return problems.shown(problems.list())
        throw new Misconfigured('The environment', [redisMistake(mistake)])
      }
      // A master that hangs must not hide the mistakes of the others.
      const masters = router.masters()
      const causes = await Promise.all(
        masters.map(async (node) => {
          const [, proof] = await Promise.allSettled([
            within(CHECK_TIMEOUT_MS, checks.require(node)),
            within(CHECK_TIMEOUT_MS, node.proved()),
          ])
          return proof.status === 'rejected' ? { node, cause: proof.reason } : []
        }),
      )
      const comparison = await stored.compared().catch(({ cause }) => cause)
      const failures = causes.flat()
      const { mistakes, warnings } = checks.findings()
      const others = [comparison, ...failures.map(({ cause }) => cause)]
        .filter((cause) => !(cause instanceof UnsafeSettings))
        .filter((cause) => cause instanceof OtherLanes || failures.length === masters.length)
        .flatMap((cause) => findMistake(cause) ?? [])
      const all = [...mistakes, ...[...new Set(others)].map((text) => redisMistake(text))]
      if (all.length > 0) throw new Misconfigured('The environment', all)
      const unreached = failures.flatMap(({ node, cause }) => problems.describe(node, cause))
      return problems.shown([...warnings, ...unreached])
    },
    problems: problems.list,
    masters: () => new Map(router.masters().map((node) => [node.address, node.state()])),
    promotions: router.promotions,
    async pendingFacts() {
      const { pendingFacts } = replicationKeys(unchecked.keys)
      const [reply] = await unchecked.send([['ZCARD', pendingFacts]])
      return Number(reply?.result)
    },
    close() {
      clearInterval(completing)
      router.close()
    },
  }
}

/** Compares the number of lanes with the stored one, and stores it first if there is none. */
function storedLanes(
  lanes: number,
  key: string,
  send: RedisConnection['send'],
  mark: () => Promise<void>,
) {
  let isEqual = false
  let comparing: Promise<void> | undefined

  async function compare(): Promise<void> {
    const [, value] = await send([
      ['SET', key, lanes, 'NX'],
      ['GET', key],
    ])
    if (typeof value?.result !== 'string') throw new Unavailable('redis', 'refused')
    if (value.result !== String(lanes))
      throw new Unavailable('redis', 'refused', { cause: new OtherLanes(lanes, value.result) })
    await mark()
    isEqual = true
  }

  return {
    isEqual: () => isEqual,
    compared() {
      comparing ??= compare().finally(() => {
        comparing = undefined
      })
      return comparing
    },
  }
}

/** Throws what `classifyFault` calls a timeout if `work` takes longer. */
async function within<Value>(ms: number, work: Promise<Value>): Promise<Value> {
  const ended = new AbortController()
  const late = sleep(ms, undefined, { signal: ended.signal, ref: false }).then(() => {
    throw new DOMException('the cluster does not answer', 'TimeoutError')
  })
  late.catch(() => {})
  try {
    return await Promise.race([work, late])
  } finally {
    ended.abort()
  }
}

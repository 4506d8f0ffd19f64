/** Calls to one slot of a cluster, each within one deadline, whatever the cluster does meanwhile. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Unavailable } from '../../../../errors.ts'
import { createDeadlines, type Deadline } from '../../../../isolate/deadline.ts'
import type { Fault } from '../../../../problems/reasons.ts'
import { DEFAULT_REDIS_TIMEOUT_MS, type RedisCallOptions } from '../../../../redis/bounded-calls.ts'
import type {
  RedisCommand,
  RedisConnection,
  RedisReply,
  SendOptions,
} from '../../../../redis/connection.ts'
import { SilentMaster } from '../fence/fence.ts'
import { classifyFault } from '../socket/faults.ts'
import { type ClusterNode, type ClusterRouter, LostSlots } from './router.ts'
import { type Redirection, readRedirection } from './slot-table.ts'

/** The first pause before a command is sent again to the same node, and the longest one. */
const FIRST_PAUSE_MS = 10
const LONGEST_PAUSE_MS = 80
/** A call that is sent on more often goes in circles. */
const MAX_HOPS = 16
const NO_OPTIONS: SendOptions = {}
const WITHOUT_KEY = new Set(['PING', 'WAIT', 'INFO', 'TIME', 'CONFIG', 'SCRIPT', 'CLUSTER', 'SCAN'])
const ASKING: RedisCommand = ['ASKING']

type Breaker = RedisCallOptions['breaker']

/** What limits the calls to one node. */
interface Bounds {
  readonly breaker: Breaker
  readonly deadlines: ReturnType<typeof createDeadlines>
}

/** One node on the way of a call. */
interface Hop {
  readonly node: ClusterNode
  readonly breaker: Breaker
  readonly entry: number
}

/** The node that a call has reached. */
interface Route {
  hop: Hop
}

/** Where and how the commands of a connection are sent. */
export interface CallTarget {
  readonly slot: number
  /** The beginning of the names of all keys in the slot. */
  readonly prefix: string
  /** Over the sockets of calls that wait for replicas. */
  readonly isWriter: boolean
}

/**
 * Returns a function that creates the `send` of a slot. Each node has its own circuit breaker and its
 * own deadlines. A command is sent again only if the node says that it has not run: never after a
 * lost socket. Throws a `TypeError` for a key of another lane. `onCircle` is called if nodes send a call on too often.
 */
export function clusterCalls(
  router: ClusterRouter,
  { timeoutMs = DEFAULT_REDIS_TIMEOUT_MS, breaker, breakerOf, onCall }: RedisCallOptions,
  onCircle: () => void = () => {},
): (target: CallTarget) => RedisConnection['send'] {
  const ofNodes = new WeakMap<ClusterNode, Bounds>()
  const ofUnknown: Bounds = { breaker, deadlines: createDeadlines(timeoutMs) }

  function boundsOf(node: ClusterNode | undefined): Bounds {
    if (node === undefined) return ofUnknown
    const known = ofNodes.get(node)
    if (known !== undefined) return known
    const bounds = {
      breaker: breakerOf?.(node.address) ?? breaker,
      deadlines: createDeadlines(timeoutMs),
    }
    ofNodes.set(node, bounds)
    return bounds
  }

  /** A call over an earlier socket says nothing about the node that owns the slot now. */
  const boundHopTo = (node: ClusterNode): Hop => ({ node, breaker: undefined, entry: 0 })

  function hopTo(node: ClusterNode): Hop {
    const { breaker } = boundsOf(node)
    return { node, breaker, entry: breaker?.enter() ?? 0 }
  }

  return ({ slot, prefix, isWriter }) => {
    const sendTo = (
      node: ClusterNode,
      commands: readonly RedisCommand[],
      deadline: Deadline,
      options: SendOptions,
    ) =>
      isWriter ? node.write(commands, deadline, options) : node.send(commands, deadline, options)

    /** Sends commands to a node. Throws when the deadline passes. */
    function transmit(
      node: ClusterNode,
      commands: readonly RedisCommand[],
      deadline: Deadline,
      options: SendOptions,
    ): Promise<readonly RedisReply[]> {
      return new Promise((resolve, reject) => {
        deadline.onExpiry = reject
        const isBound = options.over?.socket !== undefined
        if (isBound || commands[0] === ASKING || router.isVerified(node, slot))
          sendTo(node, commands, deadline, options).then(resolve, reject)
        else
          node
            .sendWhen(router.verified(node, slot), deadline, () =>
              sendTo(node, commands, deadline, options),
            )
            .then(resolve, reject)
      })
    }

    /** Sends commands to the node of the route, and reports to its circuit breaker what became of them. */
    async function exchange(
      route: Route,
      commands: readonly RedisCommand[],
      deadline: Deadline,
      options: SendOptions,
    ): Promise<readonly RedisReply[]> {
      try {
        const replies = await transmit(route.hop.node, commands, deadline, options)
        noteAnswer(route.hop, deadline, replies)
        return replies
      } catch (cause) {
        return toNext(cause, route, commands, deadline, options)
      }
    }

    /**
     * Reports the failure of an exchange. A master that lost its slots during a silence was sent nothing:
     * the new owner is sent the commands. Throws the cause of any other failure.
     */
    function toNext(
      cause: unknown,
      route: Route,
      commands: readonly RedisCommand[],
      deadline: Deadline,
      options: SendOptions,
    ): Promise<readonly RedisReply[]> {
      const { node, breaker, entry } = route.hop
      const next = cause instanceof LostSlots ? router.ownerOf(slot) : undefined
      const isElsewhere = next !== undefined && next !== node && !deadline.isExpired
      if (isElsewhere && options.over?.socket === undefined) {
        // Throws if the circuit breaker of the owner is open.
        route.hop = hopTo(next)
        return exchange(route, commands, deadline, options)
      }
      breaker?.failed(entry, deadline.isExpired ? 'timeout' : faultOf(cause))
      router.suspect()
      throw cause
    }

    /** Finds the owner of the slot. The general circuit breaker counts failures to find one. */
    async function found(deadline: Deadline, entry: number): Promise<ClusterNode> {
      try {
        const node = await within(deadline, router.find(slot))
        breaker?.succeeded()
        return node
      } catch (cause) {
        breaker?.failed(entry, faultOf(cause))
        throw cause
      }
    }

    /** Sends the commands that have not run to the nodes that the replies name. */
    async function follow(
      route: Route,
      commands: readonly RedisCommand[],
      replies: readonly RedisReply[],
      deadline: Deadline,
      options: SendOptions,
    ): Promise<readonly RedisReply[]> {
      const all = [...replies]
      let pauseMs = FIRST_PAUSE_MS
      for (let hops = 0; ; hops++) {
        const { node } = route.hop
        const pending = [...all.keys()].filter((at) => redirectionOf(all[at], node) !== undefined)
        const redirection = redirectionOf(all[pending[0] ?? -1], node)
        if (redirection === undefined) return all
        // The replicas of the next node must have the writes.
        if (isWriter) pending.push(commands.length - 1)
        if (hops === MAX_HOPS) {
          if (redirection.kind === 'moved') onCircle()
          throw new Error('the nodes send the call in circles')
        }
        if (redirection.kind === 'moved') route.hop = hopTo(router.moved(slot, redirection.server))
        else if (redirection.kind === 'ask') route.hop = hopTo(router.nodeAt(redirection.server))
        else {
          if (redirection.kind === 'down') router.suspect()
          await pause(route.hop, deadline, pauseMs)
          pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)
          route.hop = hopTo(router.ownerOf(slot) ?? node)
        }
        const isAsking = redirection.kind === 'ask'
        const again = pending.flatMap((at) => {
          const command = commands[at] ?? []
          return isAsking ? [ASKING, command] : [command]
        })
        if (options.over !== undefined) options.over.socket = undefined
        const later = await exchange(route, again, deadline, options)
        for (const [index, at] of pending.entries()) {
          const reply = later[isAsking ? 2 * index + 1 : index]
          if (reply !== undefined) all[at] = reply
        }
      }
    }

    return async (commands, options = NO_OPTIONS) => {
      requireKeys(commands, prefix)
      // A call over the socket of an earlier call goes nowhere else.
      const isBound = options.over?.socket !== undefined
      const owner = router.ownerOf(slot)
      const hopToOwner = isBound ? boundHopTo : hopTo
      const first = owner === undefined ? undefined : hopToOwner(owner)
      const entry = first === undefined ? (breaker?.enter() ?? 0) : 0
      const deadline = boundsOf(owner).deadlines.start()
      try {
        const route = { hop: first ?? hopToOwner(await found(deadline, entry)) }
        let replies: readonly RedisReply[]
        // As `exchange`, without its promise: there are thousands of calls a second.
        try {
          replies = await transmit(route.hop.node, commands, deadline, options)
          noteAnswer(route.hop, deadline, replies)
        } catch (cause) {
          replies = await toNext(cause, route, commands, deadline, options)
        }
        if (!isBound && replies.some(isError))
          replies = await follow(route, commands, replies, deadline, options)
        deadline.end(true)
        if (!isBound) onCall?.('answered')
        return replies
      } catch (cause) {
        deadline.end(false)
        const fault = faultOf(cause)
        if (!isBound) onCall?.(fault)
        throw cause instanceof Unavailable ? cause : new Unavailable('redis', fault, { cause })
      }
    }
  }
}

/** A call whose commands are of several lanes would be run by several nodes, or by none. */
function requireKeys(commands: readonly RedisCommand[], prefix: string): void {
  for (const command of commands) {
    const name = command[0]
    const key = name === 'EVALSHA' || name === 'EVAL' ? command[3] : command[1]
    if (typeof key === 'string' && key.startsWith(prefix)) continue
    if (WITHOUT_KEY.has(String(name).toUpperCase())) continue
    if (isStream(name) && command.some((each) => String(each).startsWith(prefix))) continue
    throw new TypeError(`${String(name)}: the first key is not of the lane ${prefix}`)
  }
}

/** Commands whose key is not the first argument. */
const isStream = (name: unknown): boolean =>
  /^(?:XREAD|XREADGROUP|XGROUP|XINFO|OBJECT|MEMORY|BITOP)$/i.test(String(name))

function noteAnswer(
  { breaker }: Hop,
  { isExpired }: Deadline,
  replies: readonly RedisReply[],
): void {
  if (!isExpired && !replies.every(isDown)) breaker?.succeeded()
}

const isError = ({ error }: RedisReply): boolean => error !== undefined
const isDown = ({ error }: RedisReply): boolean => error?.startsWith('CLUSTERDOWN ') ?? false

const redirectionOf = (
  reply: RedisReply | undefined,
  { server }: ClusterNode,
): Redirection | undefined =>
  reply?.error === undefined ? undefined : readRedirection(reply.error, server)

function faultOf(cause: unknown): Fault {
  if (cause instanceof Unavailable) return cause.fault
  return cause instanceof SilentMaster ? 'unreachable' : classifyFault(cause)
}

/** Waits until the deadline at most. A node that refuses until then counts as failed. */
function pause({ breaker, entry }: Hop, deadline: Deadline, ms: number): Promise<unknown> {
  return within(deadline, sleep(ms)).catch((cause) => {
    breaker?.failed(entry, 'refused')
    throw cause
  })
}

function within<Value>(deadline: Deadline, work: Promise<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    deadline.onExpiry = reject
    work.then(resolve, reject)
  })
}

/** Which node of a cluster owns which slots, as a node reports it. */
import { SLOTS } from '../../../../redis/lanes.ts'
import type { RedisServer } from '../../environment/redis-url.ts'

/** The reply to `CLUSTER SLOTS` or an error reply is not what Redis documents. */
export class UnreadableReply extends Error {
  override readonly name = 'ParserError'
}

export interface NodeEntry {
  readonly server: RedisServer
  /** The id of the node in the cluster. */
  readonly id: string
}

export interface SlotRange {
  readonly from: number
  readonly to: number
  readonly master: NodeEntry
  readonly replicas: readonly NodeEntry[]
}

/** Returns the name of a server in maps and metrics, such as `10.0.0.1:6379` or `[::1]:6379`. */
export const addressOf = ({ host, port }: RedisServer): string =>
  host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`

/**
 * Parses the reply to `CLUSTER SLOTS`. A node without a host name or address of its own is at the
 * host of the server that replied. Throws {@link UnreadableReply}.
 */
export function readSlots(reply: unknown, asked: RedisServer): readonly SlotRange[] {
  return list(reply).map((range) => {
    const [from, to, master, ...replicas] = list(range)
    if (!isSlot(from) || !isSlot(to) || from > to) throw new UnreadableReply('not a range of slots')
    return {
      from,
      to,
      master: readNode(master, asked),
      replicas: replicas.map((replica) => readNode(replica, asked)),
    }
  })
}

/** A node is its preferred endpoint, its port, its id, and pairs of other names and addresses. */
function readNode(value: unknown, asked: RedisServer): NodeEntry {
  const [endpoint, port, id, metadata] = list(value)
  if (typeof port !== 'number' || typeof id !== 'string') throw new UnreadableReply('not a node')
  const host = endpoint === '?' ? addressIn(metadata) : endpoint
  return { server: { host: typeof host === 'string' && host ? host : asked.host, port }, id }
}

/** A node that prefers host names, and has none, reports `?` and its address. */
function addressIn(metadata: unknown): unknown {
  const pairs = Array.isArray(metadata) ? metadata : []
  const at = pairs.indexOf('ip')
  return at === -1 ? undefined : pairs[at + 1]
}

const isSlot = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < SLOTS

function list(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value
  throw new UnreadableReply('not a list')
}

/** The server has not run the command. */
export type Redirection =
  /** Another node owns the slot now, or has this key of a slot that is moving. */
  | { readonly kind: 'moved' | 'ask'; readonly server: RedisServer }
  /** The same command may succeed soon: keys of its slot are moving, or the server is loading. */
  | { readonly kind: 'later' }
  /** The cluster has no owner of the slot, or the node is cut off from the others. */
  | { readonly kind: 'down' }

const LATER: Redirection = { kind: 'later' }
const DOWN: Redirection = { kind: 'down' }
const TO_SERVER = /^(?:MOVED|(ASK)) \d+ (.*):(\d+)$/

/** Reads an error reply that says that the command has not run because of its slot. Undefined for any other. */
export function readRedirection(error: string, asked: RedisServer): Redirection | undefined {
  const target = TO_SERVER.exec(error)
  if (target !== null) {
    const [, ask, host = '', port] = target
    const isUnknown = host === '' || host === '?'
    const server = { host: isUnknown ? asked.host : host, port: Number(port) }
    return { kind: ask === undefined ? 'moved' : 'ask', server }
  }
  if (/^(?:TRYAGAIN|LOADING) /.test(error)) return LATER
  return /^(?:CLUSTERDOWN|MASTERDOWN) /.test(error) ? DOWN : undefined
}

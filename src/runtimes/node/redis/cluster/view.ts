/** What one node reports about its cluster. */
import type { RedisReply } from '../../../../redis/connection.ts'
import type { RedisServer } from '../../environment/redis-url.ts'
import { UnusableServer } from '../socket/server-info.ts'
import { type NodeEntry, readSlots, type SlotRange, UnreadableReply } from './slot-table.ts'

export interface View {
  readonly ranges: readonly SlotRange[]
  /** The reply to `CLUSTER NODES`. Undefined: the user may not call it. */
  readonly nodes: string | undefined
}

/**
 * Reads the replies to `CLUSTER SLOTS` and `CLUSTER NODES` of the server `asked`. Throws `UnreadableReply`, or
 * `UnusableServer` if the user may not run the first one.
 */
export function readView(
  slots: RedisReply | undefined,
  nodes: RedisReply | undefined,
  asked: RedisServer,
): View {
  if (slots?.error?.startsWith('NOPERM ')) throw forbidden('CLUSTER SLOTS')
  if (slots?.error !== undefined) throw new UnreadableReply('the node does not report its slots')
  const ranges = readSlots(slots?.result, asked)
  if (ranges.length === 0) throw new UnreadableReply('the node knows no owner of any slot')
  return { ranges, nodes: typeof nodes?.result === 'string' ? nodes.result : undefined }
}

/** Reports whether a node marks a master as failed, or as possibly failed. */
export function hasFailed({ nodes }: View, entry: NodeEntry): boolean {
  if (nodes === undefined) throw forbidden('CLUSTER NODES')
  const flags = lineOf(nodes, entry)?.[2]?.split(',') ?? []
  return flags.includes('fail') || flags.includes('fail?')
}

/** Reports whether a node reaches another one, or is that one. */
export function isConnected(nodes: View['nodes'], entry: NodeEntry): boolean {
  const [, , flags = '', , , , , link] = lineOf(nodes, entry) ?? []
  return link === 'connected' && !/fail|noaddr|handshake/.test(flags)
}

/** Returns what `CLUSTER NODES` has about a node: id, address, flags, master, times, epoch, link, slots. */
const lineOf = (nodes: View['nodes'], { id }: NodeEntry): readonly string[] | undefined =>
  nodes
    ?.split('\n')
    .find((each) => each.startsWith(`${id} `))
    ?.split(' ')

const forbidden = (command: string) =>
  new UnusableServer(
    `the user may not run ${command}, without which no master is used; ` +
      `allow +${command.toLowerCase().replace(' ', '|')} behind -@dangerous`,
  )

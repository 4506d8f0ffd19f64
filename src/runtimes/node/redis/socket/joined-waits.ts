/** Joins calls that wait for replicas, so that a master gets one `WAIT` for all calls of one moment. */
import type { Deadline } from '../../../../isolate/deadline.ts'
import type { RedisCommand, RedisReply, SendOptions } from '../../../../redis/connection.ts'

type Send = (
  commands: readonly RedisCommand[],
  deadline: Pick<Deadline, 'isExpired'>,
  options?: SendOptions,
) => Promise<readonly RedisReply[]>

interface Waiting {
  readonly commands: readonly RedisCommand[]
  readonly deadline: Pick<Deadline, 'isExpired'>
  readonly resolve: (replies: readonly RedisReply[]) => void
  readonly reject: (cause: unknown) => void
}

/** A call that waits for as many replicas, and as long, as another one. */
const waitOf = ({ commands }: Pick<Waiting, 'commands'>): string => String(commands.at(-1))

/**
 * Returns a `send` for calls whose last command is `WAIT`. Calls of one moment are sent together, with one
 * `WAIT` behind all of them: it covers every write before. A revocation of all lanes is so many calls to
 * one master, and each would otherwise wait for a reply of the replica to its own write.
 */
export function joinWaits(send: Send): Send {
  let waiting: Waiting[] = []

  function flush(): void {
    const calls = Map.groupBy(waiting, waitOf)
    waiting = []
    for (const group of calls.values()) sendTogether(group)
  }

  function sendTogether(group: readonly Waiting[]): void {
    const wait = group[0]?.commands.at(-1) ?? []
    const commands = [...group.flatMap((call) => call.commands.slice(0, -1)), wait]
    const deadline = {
      get isExpired() {
        return group.every((call) => call.deadline.isExpired)
      },
    }
    send(commands, deadline).then(
      (replies) => {
        let at = 0
        for (const { commands: own, resolve } of group) {
          const count = own.length - 1
          resolve([...replies.slice(at, at + count), ...replies.slice(-1)])
          at += count
        }
      },
      (cause: unknown) => {
        for (const { reject } of group) reject(cause)
      },
    )
  }

  return (commands, deadline) =>
    new Promise((resolve, reject) => {
      if (waiting.push({ commands, deadline, resolve, reject }) === 1) queueMicrotask(flush)
    })
}

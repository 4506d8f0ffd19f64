/** Gives the units of a leg back that another leg has made useless. */
import type {
  RedisCommand,
  RedisConnection,
  RedisReply,
  UsedSocket,
} from '../../../redis/connection.ts'
import { createScript } from '../../../redis/script.ts'
import { REFUND_SCRIPT } from '../../../redis/scripts.generated.ts'
import type { LimitRequest } from '../limit.ts'
import { counterName } from './limit-overrides.ts'
import { findMeterScripts } from './meter.ts'

const SCRIPT = createScript(REFUND_SCRIPT)

/** Units that one call took. */
export interface Take {
  readonly lane: RedisConnection
  readonly limits: readonly LimitRequest[]
  /** As in `AdmissionFacts`. */
  readonly takenMicros: string
  /** The socket of the call. */
  readonly over: UsedSocket
}

/**
 * Gives the units back, over the socket that took them: after a failover they may not be in the data of
 * the new server, where the units of other requests are. Sent once. If it fails, the units count until
 * their windows end. Returns whether Redis has answered that the units are free. Never rejects.
 */
export async function giveBack({ lane, limits, takenMicros, over }: Take): Promise<boolean> {
  const meters = findMeterScripts(limits)
  const windows: LimitRequest[] = []
  const commands: RedisCommand[] = []
  for (const limit of limits) {
    const command = meters?.refundCommand(lane.keys, limit, takenMicros)
    if (command === undefined) windows.push(limit)
    else commands.push(command)
  }
  const keys = windows.map(({ key }) => counterName(lane.keys, key))
  const costs = windows.flatMap(({ rule: { limit, windowSeconds, cost = 1 } }) => [
    ...[limit, windowSeconds, cost],
  ])
  const call = [keys.length, ...keys, takenMicros, ...costs]
  const options = { once: true, over }
  try {
    if (keys.length > 0) commands.push(['EVALSHA', await SCRIPT.name(lane), ...call])
    if (commands.length === 0) return true
    const replies = await lane.send(commands, options)
    // Such a script has not run.
    if (!(keys.length > 0 && replies.at(-1)?.error?.includes('NOSCRIPT')))
      return replies.every(isDone)
    const again = await lane.send([['EVAL', SCRIPT.text(lane), ...call]], options)
    return [...replies.slice(0, -1), ...again].every(isDone)
  } catch {
    // The units are not used by any other request until their windows end.
    return false
  }
}

const isDone = ({ error }: RedisReply): boolean => error === undefined

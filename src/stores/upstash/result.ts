/** What Redis said to a command, or that it said nothing usable. */
import { Unavailable } from '../../errors.ts'
import type { RedisCommand, RedisReply, RedisRest } from './rest.ts'

/** The result of a reply. Throws `Unavailable` where there is none; Redis' own words go nowhere. */
export function resultOf(reply: RedisReply | undefined): unknown {
  if (reply === undefined) throw new Unavailable('redis', 'malformed')
  if (reply.error !== undefined) throw new Unavailable('redis', 'refused')
  return reply.result
}

/** Sends one command by itself; its result. Throws `Unavailable`. */
export async function ask(rest: RedisRest, command: RedisCommand): Promise<unknown> {
  const [reply] = await rest.send([command])
  return resultOf(reply)
}

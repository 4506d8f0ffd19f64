/** Reads the result of a Redis command out of its reply. */
import { Unavailable } from '../errors.ts'
import type { RedisCommand, RedisReply, RedisRest } from './rest.ts'

/**
 * Returns the result of a reply. Throws `Unavailable` if there is no reply, or if it is an error.
 * The error text of Redis is not passed on.
 */
export function resultOf(reply: RedisReply | undefined): unknown {
  if (reply === undefined) throw new Unavailable('redis', 'malformed')
  if (reply.error !== undefined) throw new Unavailable('redis', 'refused')
  return reply.result
}

/** Sends one command by itself and returns its result. Throws `Unavailable`. */
export async function ask(rest: RedisRest, command: RedisCommand): Promise<unknown> {
  const [reply] = await rest.send([command])
  return resultOf(reply)
}

/** Reads the replies of Redis. Throws `Unavailable` for anything that a command does not return. */
import { Unavailable } from '../errors.ts'
import type { RedisCommand, RedisReply, RedisRest } from './rest.ts'

const WHOLE_SECONDS = /^\d{1,12}$/

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
export async function sendCommand(rest: RedisRest, command: RedisCommand): Promise<unknown> {
  const [reply] = await rest.send([command])
  return resultOf(reply)
}

/**
 * Parses a stored second since the epoch. Throws `Unavailable` for any other value: an unreadable
 * revocation cutoff must not count as no cutoff.
 */
export function secondsOf(value: string): number {
  if (!WHOLE_SECONDS.test(value)) throw new Unavailable('redis', 'malformed')
  return Number(value)
}

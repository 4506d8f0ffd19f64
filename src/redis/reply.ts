/** Reads the replies of Redis. Each function throws `Unavailable` for a reply that it cannot read. */

import * as z from 'zod/mini'
import { Unavailable } from '../errors.ts'
import type { RedisCommand, RedisConnection, RedisReply } from './connection.ts'

const WHOLE_SECONDS = /^\d{1,12}$/

export const malformed = (): Unavailable => new Unavailable('redis', 'malformed')

/** Returns the result of a reply. Drops the error text of Redis, which may quote keys. */
export function readResult(reply: RedisReply | undefined): unknown {
  if (reply === undefined) throw malformed()
  if (reply.error !== undefined) throw new Unavailable('redis', 'refused')
  return reply.result
}

/** Sends one command by itself and returns its result. */
export async function sendCommand(redis: RedisConnection, command: RedisCommand): Promise<unknown> {
  const [reply] = await redis.send([command])
  return readResult(reply)
}

/** Returns a list, which must have `length` items if that is set. */
export function readList(value: unknown, length?: number): readonly unknown[] {
  if (Array.isArray(value) && (length === undefined || value.length === length)) return value
  throw malformed()
}

export function readText(value: unknown): string {
  if (typeof value === 'string') return value
  throw malformed()
}

export function readInteger(value: unknown): number {
  if (typeof value === 'number' && Number.isSafeInteger(value)) return value
  throw malformed()
}

/** Returns an integer from 0 to `max`. */
export function readCount(value: unknown, max: number = Number.MAX_SAFE_INTEGER): number {
  const count = readInteger(value)
  if (count >= 0 && count <= max) return count
  throw malformed()
}

/** Parses a stored record: JSON of exactly this schema. */
export function recordIn<Schema extends z.core.$ZodType>(
  value: unknown,
  schema: Schema,
): z.output<Schema> {
  let json: unknown
  try {
    json = JSON.parse(readText(value))
  } catch {
    throw malformed()
  }
  const parsed = z.safeParse(schema, json)
  if (!parsed.success) throw malformed()
  return parsed.data
}

/** As `recordIn`, except that a record that it cannot read, such as one of another version, is undefined. */
export function readableRecord<Schema extends z.core.$ZodType>(
  value: unknown,
  schema: Schema,
): z.output<Schema> | undefined {
  try {
    return recordIn(value, schema)
  } catch {
    return undefined
  }
}

/** Parses a stored second since the epoch. Throws for any other text, never ignores a cutoff. */
export function readSeconds(value: string): number {
  if (!WHOLE_SECONDS.test(value)) throw malformed()
  return Number(value)
}

/** What a socket to Redis throws. */
import { ReplyError } from 'ioredis'
import type { Fault } from '../../../../problems/reasons.ts'
import { UnusableServer } from './server-info.ts'

export const isErrorReply = (cause: unknown): cause is Error => cause instanceof ReplyError

export const unreadable = () =>
  Object.assign(new Error('a reply is not readable'), { name: 'ParserError' })

export const isBusy = (error: unknown): error is Error =>
  isErrorReply(error) && error.message.startsWith('BUSY ')

export const isForbidden = (error: unknown): boolean =>
  isErrorReply(error) && error.message.startsWith('NOPERM')

/** Classifies what a socket throws. */
export function classifyFault(cause: unknown): Fault {
  if (isErrorReply(cause) || cause instanceof UnusableServer) return 'refused'
  const name = cause instanceof Error ? cause.name : ''
  if (name === 'ParserError') return 'malformed'
  return name === 'TimeoutError' ? 'timeout' : 'unreachable'
}

/** Returns why no attempt to connect can succeed, or undefined. Never contains text of Redis. */
export function findMistake(cause: unknown): string | undefined {
  if (cause instanceof UnusableServer) return cause.message
  if (!isErrorReply(cause)) return undefined
  if (/^(?:NOAUTH|WRONGPASS) /.test(cause.message)) return 'Redis refuses the user or the password'
  return /\bDB index\b/.test(cause.message) ? 'Redis has no database of this number' : undefined
}

/** Parses the feed of changed revocations, revocation cutoffs and bans. */
import { Unavailable } from '../../errors.ts'
import type { FeedCursor, FeedReply } from '../feed.ts'

/** Parses what `read-changes.lua` returned. Throws `Unavailable` for anything else. */
export function feedReplyOf(reply: unknown, since: FeedCursor): FeedReply {
  if (!Array.isArray(reply)) throw new Unavailable('redis', 'malformed')
  const [position, isKnown, ...changed] = reply as readonly unknown[]
  if (typeof position !== 'string' || !changed.every((key) => typeof key === 'string'))
    throw new Unavailable('redis', 'malformed')
  if (isKnown === 1 && position !== '') return { since, position, changed }
  if (isKnown !== 0 || changed.length > 0) throw new Unavailable('redis', 'malformed')
  return { since, position, changed: undefined }
}

/** Reads the feed of changed revocations, revocation cutoffs and bans. */

import type { RedisCommand, RedisConnection } from '../../../redis/connection.ts'
import { malformed, readList, readText } from '../../../redis/reply.ts'
import { createScript } from '../../../redis/script.ts'
import { READ_CHANGES_SCRIPT } from '../../../redis/scripts.generated.ts'
import type { FeedCursor, FeedReply } from '../feed.ts'

export const FEED_SCRIPT = createScript(READ_CHANGES_SCRIPT)

/** Returns the command that reads the changes since a cursor. */
export async function feedCommand(
  redis: RedisConnection,
  { position }: FeedCursor,
): Promise<RedisCommand> {
  return ['EVALSHA', await FEED_SCRIPT.name(redis), 1, redis.keys.feed, position]
}

/** Parses the result of the script. Throws `Unavailable` for anything else. */
export function readFeedReply(result: unknown, since: FeedCursor): FeedReply {
  const [first, isKnown, ...keys] = readList(result)
  const position = readText(first)
  const changed = keys.map(readText)
  if (isKnown === 1 && position !== '') return { since, position, changed }
  if (isKnown !== 0 || changed.length > 0) throw malformed()
  return { since, position, changed: undefined }
}

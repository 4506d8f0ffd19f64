/** Reads the feed of revocations alone, with the script that admission sends. */

import type { FeedCursor, FeedReply } from '../../src/access/revocation/feed.ts'
import { FEED_SCRIPT, readFeedReply } from '../../src/access/revocation/redis/feed.ts'
import type { RedisConnection } from '../../src/redis/connection.ts'
import { DEFAULT_KEYS } from '../../src/redis/keys.ts'
import { runScript } from '../../src/redis/script.ts'

/** Creates a function that reads the changes since a cursor in one call. */
export function createRevocationFeedSource(rest: RedisConnection) {
  return {
    async since(cursor: FeedCursor): Promise<FeedReply> {
      return readFeedReply(
        await runScript(rest, FEED_SCRIPT, [DEFAULT_KEYS.feed], [cursor.position]),
        cursor,
      )
    },
  }
}

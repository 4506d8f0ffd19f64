/** Reads the feed of revocations alone, with the script that admission sends. */

import type { RedisRest } from '../../src/redis/rest.ts'
import { createScript, runScript } from '../../src/redis/script.ts'
import type { FeedCursor, FeedReply } from '../../src/revocation/feed.ts'
import { FEED_KEY, FEED_SCRIPT, feedReplyOf } from '../../src/revocation/redis/feed.ts'

/** Creates a function that reads the changes since a cursor in one call. */
export function createRevocationFeedSource(rest: RedisRest) {
  const script = createScript(FEED_SCRIPT)
  return {
    async since(cursor: FeedCursor): Promise<FeedReply> {
      return feedReplyOf(await runScript(rest, script, [FEED_KEY], [cursor.position]), cursor)
    },
  }
}

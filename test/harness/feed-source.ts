/** Reads the feed of revocations alone, with the script that admission sends. */

import { FEED_KEY } from '../../src/redis/keys.ts'
import type { RedisRest } from '../../src/redis/rest.ts'
import { createScript, runScript } from '../../src/redis/script.ts'
import type { FeedCursor, FeedReply } from '../../src/revocation/feed.ts'
import { feedReplyOf } from '../../src/revocation/redis/feed.ts'
import { READ_CHANGES_SCRIPT } from '../../src/revocation/redis/scripts.generated.ts'

/** Creates a function that reads the changes since a cursor in one call. */
export function createRevocationFeedSource(rest: RedisRest) {
  const script = createScript(READ_CHANGES_SCRIPT)
  return {
    async since(cursor: FeedCursor): Promise<FeedReply> {
      return feedReplyOf(await runScript(rest, script, [FEED_KEY], [cursor.position]), cursor)
    },
  }
}

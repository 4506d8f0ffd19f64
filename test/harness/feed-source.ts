/** Reads the feed of revocations by itself, with the Lua that stands in the script of admission. */
import type { FeedCursor, FeedReply } from '../../src/admission/revocation-feed.ts'
import type { RedisRest } from '../../src/stores/upstash/rest.ts'
import {
  FEED_KEY,
  FEED_MOST,
  FEED_SINCE,
  feedReplyOf,
} from '../../src/stores/upstash/revocation-feed.ts'
import { createScript } from '../../src/stores/upstash/script.ts'

/** KEYS: the feed. ARGV: position, most. */
const SINCE_SCRIPT = `#!lua flags=allow-key-locking
${FEED_SINCE}
return feed_since(KEYS[1], ARGV[1], tonumber(ARGV[2]))
`

/** Makes the reader: what has changed since a cursor, in one call. */
export function createRevocationFeedSource(rest: RedisRest) {
  const script = createScript(SINCE_SCRIPT)
  return {
    async since(cursor: FeedCursor): Promise<FeedReply> {
      return feedReplyOf(await script(rest, [FEED_KEY], [cursor.position, FEED_MOST]), cursor)
    },
  }
}

/** The specification of the feed, which the scripts follow, and of what can happen to its server. */
import type { FeedCursor, FeedReply } from '../../src/revocation/feed.ts'

export interface FeedModelOptions {
  /** Keys that are told at once. */
  readonly most: number
  /** Entries that there may be. */
  readonly entries: number
  /** False: the broken one that believes every position of the same epoch. */
  readonly checksTime?: boolean
}

interface Feed {
  readonly epoch: number
  readonly oldest: number
  /** From `oldest` on. */
  readonly entries: readonly { readonly time: number; readonly key: string | undefined }[]
}

interface State {
  readonly feed: Feed | undefined
  /** Keys that are revoked, and since when without a break. */
  readonly revoked: ReadonlyMap<string, number>
}

export type FeedModel = ReturnType<typeof createFeedModel>

export function createFeedModel({ most, entries: room, checksTime = true }: FeedModelOptions) {
  let state: State = { feed: undefined, revoked: new Map() }
  let saved: State = state
  /** No two entries are of one time. */
  let time = 0

  function feed(): Feed {
    time += 1
    return state.feed ?? { epoch: time, oldest: 0, entries: [{ time, key: undefined }] }
  }

  function positionOf({ epoch, oldest, entries }: Feed): string {
    return `${epoch} ${oldest + entries.length - 1} ${entries.at(-1)?.time}`
  }

  return {
    /** Since when a key is revoked; undefined: it is not. */
    revokedSinceMs: (key: string) => state.revoked.get(key),

    /** Revokes a key, or takes that back. */
    write(key: string, nowMs: number): void {
      const { epoch, oldest, entries } = feed()
      const all = [...entries, { time, key }]
      const gone = Math.max(0, all.length - room)
      const revoked = new Map(state.revoked)
      if (!revoked.delete(key)) revoked.set(key, nowMs)
      state = { feed: { epoch, oldest: oldest + gone, entries: all.slice(gone) }, revoked }
    },

    since(since: FeedCursor): FeedReply {
      const present = feed()
      state = { ...state, feed: present }
      const position = positionOf(present)
      const { epoch, oldest, entries } = present
      const [itsEpoch, itsNumber, itsTime] = since.position.split(' ').map(Number)
      const at = (itsNumber ?? 0) - oldest
      const isKnown =
        since.position !== '' &&
        itsEpoch === epoch &&
        entries[at] !== undefined &&
        (!checksTime || entries[at].time === itsTime) &&
        entries.length - 1 - at <= most
      if (!isKnown) return { since, position, changed: undefined }
      return { since, position, changed: entries.slice(at + 1).map(({ key }) => key ?? '') }
    },

    lose(): void {
      state = { ...state, feed: undefined }
    },
    /** A replica has got everything. */
    save(): void {
      saved = state
    },
    /** The replica takes over. */
    failOver(nowMs: number): void {
      const before = state.revoked
      const revoked = new Map([...saved.revoked].map(([key]) => [key, before.get(key) ?? nowMs]))
      state = saved = { feed: saved.feed, revoked }
    },
  }
}

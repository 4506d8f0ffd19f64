/** The specification of the feed, which the scripts follow, with the failures of its server. */
import type { FeedCursor, FeedReply } from '../../../src/access/revocation/feed.ts'

export interface FeedModelOptions {
  /** The maximum number of keys in one reply. */
  readonly most: number
  /** The maximum number of entries. */
  readonly entries: number
  /** False: a deliberate defect, which accepts every position of the same epoch. */
  readonly checksTime?: boolean
}

interface Feed {
  readonly epoch: number
  readonly oldest: number
  /** The entries from `oldest` on. */
  readonly entries: readonly { readonly time: number; readonly key: string | undefined }[]
}

interface State {
  readonly feed: Feed | undefined
  /** Revoked keys, with the start of the current revocation. */
  readonly revoked: ReadonlyMap<string, number>
}

export type FeedModel = ReturnType<typeof createFeedModel>

export function createFeedModel({ most, entries: room, checksTime = true }: FeedModelOptions) {
  let state: State = { feed: undefined, revoked: new Map() }
  let saved: State = state
  /** No two entries have the same time. */
  let time = 0

  function feed(): Feed {
    time += 1
    return state.feed ?? { epoch: time, oldest: 0, entries: [{ time, key: undefined }] }
  }

  function positionOf({ epoch, oldest, entries }: Feed): string {
    return `${epoch} ${oldest + entries.length - 1} ${entries.at(-1)?.time}`
  }

  return {
    /** Returns when the key was revoked, or undefined if it is not. */
    revokedSinceMs: (key: string) => state.revoked.get(key),

    /** Revokes a key, or deletes its revocation. */
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
    /** The replica receives everything. */
    save(): void {
      saved = state
    },
    /** The replica is promoted. */
    failOver(nowMs: number): void {
      const before = state.revoked
      const revoked = new Map([...saved.revoked].map(([key]) => [key, before.get(key) ?? nowMs]))
      state = saved = { feed: saved.feed, revoked }
    },
  }
}

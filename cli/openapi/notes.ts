/** What an import could not map, or could map only in part. */

/**
 * `unmapped`: a part of the document is not checked, or a request that it allows is refused.
 * `approximated`: a schema accepts more values than the document.
 * `assumed`: the document does not decide it. Check it.
 * `ignored`: members that do not concern requests, such as `responses`. `place` is their name.
 */
export const NOTE_KINDS = ['unmapped', 'approximated', 'assumed', 'ignored'] as const
export type NoteKind = (typeof NOTE_KINDS)[number]

export interface Note {
  readonly kind: NoteKind
  /** `POST /orders body /price`, or the JSON Pointer of a shared schema. */
  readonly place: string
  readonly message: string
}

/** Collects notes. Equal notes count once. */
export type Notes = ReturnType<typeof createNotes>

export function createNotes() {
  const notes = new Map<string, Note>()
  const add = (kind: NoteKind) => (place: string, message: string) => {
    notes.set(`${kind} ${place} ${message}`, { kind, place, message })
  }
  return {
    unmapped: add('unmapped'),
    approximated: add('approximated'),
    assumed: add('assumed'),
    ignored: add('ignored'),
    all: (): readonly Note[] => [...notes.values()],
  }
}

/** Erases a person from the events of a block. The hash of the block stays valid. */
import type { Digest } from '../../crypto/sha256.ts'
import { isAbout } from '../erasure.ts'
import type { AuditEvent } from '../event.ts'
import { erasuresIn, eventOfLine, withoutPart } from './line.ts'

/** Whose data is erased, and up to when. */
export interface Erasing {
  /** Of the erasure. */
  readonly id: string
  /** Null once the erasure is done, as is `subject`. */
  readonly issuer: string | null
  readonly subject: string | null
  /** Later events are not covered. */
  readonly ordered_ms: number
  /** Null: the events of every tenant. */
  readonly tenant: string | null
}

export async function eraseLines(lines: readonly string[], erasing: Erasing, digest?: Digest) {
  const left: string[] = []
  let [erased, isChanged] = [0, false]
  for (const line of lines) {
    let now = line
    const event = eventOfLine(line)
    if (isCovered(event, erasing)) {
      const { actor, change } = event
      if (actor.subject === erasing.subject && actor.issuer === erasing.issuer)
        now = await withoutPart(now, 'caller', erasing.id, digest)
      if (change !== undefined && isAbout(change, erasing.subject ?? ''))
        now = await withoutPart(now, 'change', erasing.id, digest)
    }
    isChanged ||= now !== line
    if (erasuresIn(now).includes(erasing.id)) erased += 1
    left.push(now)
  }
  return {
    lines: left,
    /** Lines that this erasure has changed, now or earlier. */
    erased,
    isChanged,
  }
}

function isCovered({ time, actor }: AuditEvent, { subject, ordered_ms, tenant }: Erasing): boolean {
  if (subject === null || Date.parse(time) > ordered_ms) return false
  return tenant === null || actor.tenant === tenant
}

/** One reading of claims: null and empty text mean that a claim is absent. */

import type { Path } from '../../validators/claim-path.ts'

/** Reports whether a claim has a value. Some providers send null, or an empty text, in place of none. */
export const hasValue = (value: unknown): boolean =>
  value !== undefined && value !== null && value !== ''

/** Returns a claim of a parsed object, never of its prototype; undefined if it has no value. */
export function present(object: Readonly<Record<string, unknown>>, name: string): unknown {
  const value = Object.hasOwn(object, name) ? object[name] : undefined
  return hasValue(value) ? value : undefined
}

type Payload = Readonly<Record<string, unknown>>

/** Returns the values at a path. `*` means every member, or every item of a list. */
export function valuesAt(payload: Payload, path: Path): readonly unknown[] {
  let found: readonly unknown[] = [payload]
  for (const name of path) found = found.flatMap((value) => membersOf(value, name))
  return found
}

function membersOf(value: unknown, name: string): readonly unknown[] {
  if (typeof value !== 'object' || value === null) return []
  if (name === '*') return Object.values(value)
  if (Array.isArray(value) || !Object.hasOwn(value, name)) return []
  return [(value as Payload)[name]]
}

/** One reading of claims: null and empty text mean that a claim is absent. */

/** Reports whether a claim has a value. Some providers send null, or an empty text, in place of none. */
export const hasValue = (value: unknown): boolean =>
  value !== undefined && value !== null && value !== ''

/** Returns a claim of a parsed object, never of its prototype; undefined if it has no value. */
export function present(object: Readonly<Record<string, unknown>>, name: string): unknown {
  const value = Object.hasOwn(object, name) ? object[name] : undefined
  return hasValue(value) ? value : undefined
}

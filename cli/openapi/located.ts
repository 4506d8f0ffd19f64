/** Values of an OpenAPI document with their places. */
export type JsonObject = Readonly<Record<string, unknown>>

/** A value of a document, and its place, from which relative references are resolved. */
export interface Located<Value = unknown> {
  readonly value: Value
  /** URL of the file. */
  readonly file: string
  /** JSON Pointer in the file. */
  readonly pointer: string
}

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Returns a member of an object or list. */
export function at(located: Located, ...names: readonly (string | number)[]): Located {
  return names.reduce<Located>(
    ({ value, file, pointer }, name) => ({
      value: memberOf(value, String(name)),
      file,
      pointer: `${pointer}/${String(name).replaceAll('~', '~0').replaceAll('/', '~1')}`,
    }),
    located,
  )
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as JsonObject)[name]
    : undefined
}

/** Values in memory that end by a clock, as keys with a time to live do in Redis. */

export interface ExpiringValues<Value> {
  /** Returns a value that has not ended. */
  get(key: string): Value | undefined
  /** Stores a value until `untilMs`, in milliseconds since the epoch. */
  set(key: string, value: Value, untilMs: number): void
  /** Returns when the present value ends, in milliseconds since the epoch; 0 without a value. */
  endOf(key: string): number
  delete(key: string): void
}

/** Creates an empty map. `now` returns milliseconds since the epoch. */
export function createExpiringValues<Value>(now: () => number): ExpiringValues<Value> {
  const entries = new Map<string, { readonly value: Value; readonly untilMs: number }>()

  function present(key: string) {
    const entry = entries.get(key)
    if (entry === undefined || now() < entry.untilMs) return entry
    entries.delete(key)
    return undefined
  }

  return {
    get: (key) => present(key)?.value,
    endOf: (key) => present(key)?.untilMs ?? 0,
    set: (key, value, untilMs) => void entries.set(key, { value, untilMs }),
    delete: (key) => void entries.delete(key),
  }
}

/** Values that are kept for objects, as long as these live. */

export interface Attached<Key extends object, Value> {
  /** Returns the value of an object. */
  (of: Key): Value | undefined
  /** Keeps a value, and returns it. */
  (of: Key, value: Value): Value
}

/**
 * Creates a map from objects to values, which a copy of an object does not have. An object that cannot be extended keeps none.
 * A `WeakMap` with all tokens of a full cache was most of the pause of a full collection: V8 visits its entries again
 * while it finds objects through them.
 */
export function attached<Key extends object, Value>(): Attached<Key, Value> {
  const name = Symbol()
  return (of: Key, value?: Value) => {
    if (value === undefined) return (of as Partial<Record<symbol, Value>>)[name] as Value
    Reflect.defineProperty(of, name, { value, configurable: true })
    return value
  }
}

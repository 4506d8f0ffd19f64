/** Reads JSON of others: a text that is no JSON, or no object, is undefined. */

/** Returns the value of a text, or undefined if it is not JSON. */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Returns the JSON object or list of a text, or undefined. */
export function objectIn(text: string): object | undefined {
  const value = jsonIn(text)
  return typeof value === 'object' && value !== null ? value : undefined
}

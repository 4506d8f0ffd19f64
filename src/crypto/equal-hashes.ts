/** Compares two hashes of the same length in constant time. */
export function equalHashes(a: string, b: string): boolean {
  let difference = a.length ^ b.length
  for (let at = 0; at < a.length; at++) difference |= a.charCodeAt(at) ^ b.charCodeAt(at)
  return difference === 0
}

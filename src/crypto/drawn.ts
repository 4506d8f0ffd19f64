/** Variants of a secret, for stores that look for one with a certain hash. */

/** Returns the secret of an attempt to draw it: of two attempts, the last 32 bits differ. */
export function drawnSecret(secret: Uint8Array, attempt: number): Uint8Array<ArrayBuffer> {
  const drawn = new Uint8Array(secret)
  const view = new DataView(drawn.buffer)
  const last = drawn.length - 4
  view.setUint32(last, view.getUint32(last) + attempt)
  return drawn
}

/** Reads an answer's body for others while its first reader is being served. */

/** A whole body, encoded as the origin encoded it. */
export type CollectedBody = Uint8Array<ArrayBuffer>

export interface CollectLimits {
  readonly maxBytes: number
  /** How long the body may take, milliseconds. */
  readonly timeoutMs: number
}

/**
 * The bytes of a body; undefined for one that is longer or slower than `limits` allow, which is then
 * cancelled. Rejects if the body breaks off.
 */
export async function collect(
  body: ReadableStream<Uint8Array>,
  { maxBytes, timeoutMs }: CollectLimits,
): Promise<CollectedBody | undefined> {
  const reader = body.getReader()
  const chunks: Uint8Array[] = []
  let bytes = 0
  let timer!: ReturnType<typeof setTimeout>
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), timeoutMs)
  })
  try {
    for (;;) {
      const chunk = await Promise.race([reader.read(), late])
      if (chunk?.done) return joined(chunks, bytes)
      bytes += chunk?.value.byteLength ?? 0
      if (chunk === undefined || bytes > maxBytes) {
        reader.cancel().catch(() => {})
        return undefined
      }
      chunks.push(chunk.value)
    }
  } finally {
    clearTimeout(timer)
  }
}

function joined(chunks: readonly Uint8Array[], bytes: number): CollectedBody {
  const whole = new Uint8Array(bytes)
  let at = 0
  for (const chunk of chunks) {
    whole.set(chunk, at)
    at += chunk.byteLength
  }
  return whole
}

/** Reads a response body into memory for other requests while the first request streams it. */

/** A complete body, with the content encoding of the origin. */
export type CollectedBody = Uint8Array<ArrayBuffer>

export interface CollectLimits {
  readonly maxBytes: number
  /** Maximum time to read the body, in milliseconds. */
  readonly timeoutMs: number
}

/**
 * Reads a body and returns its bytes. If the body exceeds `limits`, cancels it and returns
 * undefined. Rejects if the stream fails.
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

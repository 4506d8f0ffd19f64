/** Reads the rest of a request body after the request was refused. */

/** Clients and proxies have usually sent no more than this when the refusal reaches them. */
const DRAIN_BYTES = 16_777_216
const DRAIN_MS = 1_000

/** Large reads need few calls from JavaScript. Reads of 4 KB would cost four times as much. */
const READ_BYTES = 65_536

interface Chunks {
  read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>
  cancel(reason?: unknown): Promise<void>
}

/**
 * Discards at most 16 MiB for at most one second, and then cancels the stream. If a server closes
 * while its client still sends, the connection is reset, and the client sees a broken connection,
 * or a 5xx of a proxy, instead of the response (RFC 9112 section 9.6). Never rejects.
 */
export async function drain(chunks: Chunks): Promise<void> {
  let timer!: ReturnType<typeof setTimeout>
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(resolve, DRAIN_MS, 'late')
  })
  try {
    for (let bytes = 0; bytes < DRAIN_BYTES; ) {
      const chunk = await Promise.race([chunks.read(), late])
      if (chunk === 'late' || chunk.done) break
      bytes += chunk.value?.byteLength ?? 0
    }
  } catch {
    // The client has disconnected.
  } finally {
    clearTimeout(timer)
    chunks.cancel().catch(() => undefined)
  }
}

/** Locks a stream and reads it, in large pieces if it is a byte stream. */
export function readChunks(body: ReadableStream<Uint8Array>): Chunks {
  try {
    const reader = body.getReader({ mode: 'byob' })
    return {
      read: () => reader.read(new Uint8Array(READ_BYTES)),
      cancel: (reason) => reader.cancel(reason),
    }
  } catch {
    return body.getReader()
  }
}

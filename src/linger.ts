/** The rest of a request that was refused before it had been read. */

/** What clients and proxies have usually sent already when the refusal reaches them. */
export const LINGER_BYTES = 16_777_216
/** A client that sends more slowly than this is not waited for. */
export const LINGER_MS = 1_000

/** A megabyte then takes few turns through JavaScript; read by 4 KB it costs four times as much. */
const READ_BYTES = 65_536

/** What {@link linger} needs of a stream's reader. */
export interface Chunks {
  read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>
  cancel(reason?: unknown): Promise<void>
}

/**
 * Reads on and throws away, for at most 16 MiB and one second, and then cancels. A server that
 * answers and closes while its client still sends makes the connection reset, and the client or a
 * proxy in between may lose the answer with it (RFC 9112 section 9.6): the caller would see a
 * broken connection, or a 5xx of somebody else's, in place of the refusal. Never rejects.
 */
export async function linger(chunks: Chunks): Promise<void> {
  let timer!: ReturnType<typeof setTimeout>
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(resolve, LINGER_MS, 'late')
  })
  try {
    for (let bytes = 0; bytes < LINGER_BYTES; ) {
      const chunk = await Promise.race([chunks.read(), late])
      if (chunk === 'late' || chunk.done) break
      bytes += chunk.value?.byteLength ?? 0
    }
  } catch {
    // The client has gone: there is nobody to linger for.
  } finally {
    clearTimeout(timer)
    chunks.cancel().catch(() => undefined)
  }
}

/** Locks a stream and reads it in large pieces where it knows how to. */
export function chunksOf(body: ReadableStream<Uint8Array>): Chunks {
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

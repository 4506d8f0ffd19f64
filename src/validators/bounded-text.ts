/** Text from servers that may send too much of it. */

/** A body was refused: it is too long, or not UTF-8. Says no word of it. */
export class BodyRefused extends Error {
  override readonly name = 'BodyRefused'
  readonly check: 'length' | 'encoding'

  constructor(check: BodyRefused['check']) {
    super(check)
    this.check = check
  }
}

/**
 * The whole of a body as text. A body longer than `maxBytes` after decompression, whatever its
 * `Content-Length` says, is cut off and refused, as is one that is not UTF-8: {@link BodyRefused}. A
 * byte order mark stays. Rejects with what the stream does if that breaks off.
 */
export async function boundedText(
  body: ReadableStream<Uint8Array> | null,
  maxBytes: number,
): Promise<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  let text = ''
  let length = 0
  // Leaving the loop early cancels the stream, and with it the connection.
  for await (const chunk of body ?? []) {
    length += chunk.byteLength
    if (length > maxBytes) throw new BodyRefused('length')
    text += decode(decoder, chunk)
  }
  return text + decode(decoder)
}

function decode(decoder: TextDecoder, chunk?: Uint8Array): string {
  try {
    return decoder.decode(chunk, { stream: chunk !== undefined })
  } catch {
    throw new BodyRefused('encoding')
  }
}

/** Reads text from servers that may send too much of it. */

/** A body was refused. Contains no text of the body. */
export class BodyRefused extends Error {
  override readonly name = 'BodyRefused'
  readonly check: 'length' | 'encoding'

  constructor(check: BodyRefused['check']) {
    super(check)
    this.check = check
  }
}

/** Reads a whole body as text, with its byte order mark. `maxBytes` counts decompressed bytes. */
export async function boundedText(
  body: AsyncIterable<Uint8Array> | null,
  maxBytes: number,
): Promise<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  let text = ''
  let length = 0
  // Leaving the loop early cancels the stream, and so closes the connection.
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

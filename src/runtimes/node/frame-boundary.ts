/** Finds where WebSocket frames end in a stream of bytes (RFC 6455 section 5.2), without reading them. */

/** The longest header: two bytes, eight of length, four of mask. */
const MAX_HEADER_BYTES = 14
const LENGTH_OF_TWO_BYTES = 126
const LENGTH_OF_EIGHT_BYTES = 127

export class FrameBoundary {
  readonly #header = Buffer.alloc(MAX_HEADER_BYTES)
  /** Bytes of a header that is not complete. */
  #headerBytes = 0
  /** Bytes of the payload that have not come. */
  #payloadBytes = 0

  /** True before the first byte of a frame. */
  get isBetweenFrames(): boolean {
    return this.#headerBytes === 0 && this.#payloadBytes === 0
  }

  /** Reads a chunk. Returns how many of its bytes belong to frames that end in it. */
  read(chunk: Buffer): number {
    let complete = this.isBetweenFrames ? 0 : -1
    let at = 0
    while (at < chunk.length) {
      if (this.#payloadBytes > 0) {
        const bytes = Math.min(this.#payloadBytes, chunk.length - at)
        this.#payloadBytes -= bytes
        at += bytes
      } else {
        this.#header[this.#headerBytes] = chunk[at] as number
        this.#headerBytes += 1
        at += 1
        if (this.#headerBytes < this.#headerLength()) continue
        this.#payloadBytes = this.#payloadLength()
        this.#headerBytes = 0
      }
      if (this.isBetweenFrames) complete = at
    }
    return Math.max(complete, 0)
  }

  #headerLength(): number {
    const second = this.#header[1] as number
    if (this.#headerBytes < 2) return 2
    return 2 + lengthBytes(second) + (second & 0x80 ? 4 : 0)
  }

  #payloadLength(): number {
    const short = (this.#header[1] as number) & 0x7f
    if (short === LENGTH_OF_TWO_BYTES) return this.#header.readUInt16BE(2)
    // Lengths above 2^53 lose digits. No connection lives that long.
    if (short === LENGTH_OF_EIGHT_BYTES) return Number(this.#header.readBigUInt64BE(2))
    return short
  }
}

function lengthBytes(second: number): number {
  const short = second & 0x7f
  if (short === LENGTH_OF_TWO_BYTES) return 2
  return short === LENGTH_OF_EIGHT_BYTES ? 8 : 0
}

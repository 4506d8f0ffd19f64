/** Compression of the events of a block: raw deflate (RFC 1951), which every runtime has. */

export interface Compression {
  /** Compresses a text's UTF-8. */
  compress(text: string): Uint8Array | Promise<Uint8Array>
  /** Returns the text. Fails if the bytes are not what `compress` returned. */
  decompress(bytes: Uint8Array): string | Promise<string>
}

/** The one of Web Streams. Node has one that is twice as fast, and needs no promise. */
export const STREAMS: Compression = {
  async compress(text) {
    const stream = new Blob([text]).stream().pipeThrough(new CompressionStream('deflate-raw'))
    return new Uint8Array(await new Response(stream).arrayBuffer())
  },
  async decompress(bytes) {
    const source = new Blob([bytes.slice()]).stream()
    return new Response(source.pipeThrough(new DecompressionStream('deflate-raw'))).text()
  },
}

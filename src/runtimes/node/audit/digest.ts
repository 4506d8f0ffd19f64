/** Digests and compression of the chain on Node, which need neither a promise nor another thread. */
import { hash } from 'node:crypto'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import type { Compression } from '../../../audit/blocks/compression.ts'

/** Returns the base64url SHA-256 of a text's UTF-8. */
export const sha256Now = (text: string): string => hash('sha256', text, 'base64url')

/** Higher levels take twice the time for a tenth of the size. */
const LEVEL = 1
/** A block has less than a tenth of it. */
const MAX_BYTES = 16_777_216
/** Most blocks fit, and chunks of the default size take three quarters more time. */
const CHUNK_BYTES = 262_144

export const deflateNow: Compression = {
  compress: (text) => deflateRawSync(text, { level: LEVEL }),
  decompress: (bytes) =>
    inflateRawSync(bytes, { maxOutputLength: MAX_BYTES, chunkSize: CHUNK_BYTES }).toString(),
}

/** Compact JWS (RFC 7515): grammar, strict parsing and signature verification. */
import { base64url, compactVerify } from 'jose'
import { JOSEError } from 'jose/errors'
import { Unavailable } from '../../errors.ts'
import { parseStrictJson } from '../../http/strict-json.ts'
import type { TokenCheck } from '../../problems/checks.ts'
import { MAX_KEY_ID_CHARS } from '../../validators/jwk.ts'
import type { KeyHint, VerificationKey } from './key-ring.ts'
import { rejected } from './rejection.ts'

/**
 * The maximum size of any token, such as an ID token in a response. A credential in a request header
 * has a lower limit: see `readCredential`.
 */
export const MAX_TOKEN_BYTES = 65_536
/** More than any header or claim set has, and low enough for the stack of a parser. */
const MAX_JSON_DEPTH = 16

const SEGMENTS = /^[\w-]+\.[\w-]+\.[\w-]+$/
/** Allowed last characters of a group of two or three: those whose unused bits are zero. */
const LAST_OF_TWO = 'AQgw'
const LAST_OF_THREE = 'AEIMQUYcgkosw048'

/**
 * Throws `Denied` unless `token` is a JWS in compact serialization (RFC 7515 section 7.1) of at
 * most `maxBytes` (default 65,536): three segments, none empty, each canonical base64url. A token
 * therefore has exactly one accepted spelling.
 */
export function refuseMalformed(token: string, maxBytes: number = MAX_TOKEN_BYTES): void {
  if (token.length > maxBytes) throw rejected('length')
  if (isCompactJws(token)) return
  if (token === '') throw rejected('empty')
  if (/[\s,]/.test(token)) throw rejected('authorization_grammar')
  const segments = token.split('.')
  throw rejected(segments.length === 3 && !segments.includes('') ? 'base64url' : 'segments')
}

/** Reports whether {@link refuseMalformed} accepts a text. Does NOT check its total length. */
export function isCompactJws(token: string): boolean {
  if (!SEGMENTS.test(token)) return false
  const first = token.indexOf('.')
  const second = token.indexOf('.', first + 1)
  return (
    isCanonical(token, 0, first) &&
    isCanonical(token, first + 1, second) &&
    isCanonical(token, second + 1, token.length)
  )
}

/**
 * Reports whether a run of the base64url alphabet is canonical (RFC 4648 section 3.5): no two texts
 * decode to the same bytes. This is not a single pattern, because every request executes it, and a
 * pattern that counts in fours takes three times as long.
 */
function isCanonical(text: string, start: number, end: number): boolean {
  const last = text.charAt(end - 1)
  switch ((end - start) % 4) {
    case 0:
      return true
    case 2:
      return LAST_OF_TWO.includes(last)
    case 3:
      return LAST_OF_THREE.includes(last)
    default:
      return false
  }
}

/** The members of a protected header that the gateway uses. */
export interface JwsHeader extends KeyHint {
  readonly typ: string | undefined
}

/**
 * Reads a token's protected header. Throws `Denied` unless the token is canonical and its header is
 * unambiguous: base64url, UTF-8, a JSON object without duplicate names. Extensions are refused
 * (`crit`, RFC 7515 section 4.1.11; `b64`, RFC 7797). Keys in the header (`jwk`, `jku`, `x5u`,
 * `x5c`) are ignored. Does NOT verify anything.
 */
export function readHeader(token: string): JwsHeader {
  return parseHeader(readHeaderMembers(token))
}

/**
 * Returns all members of a token's protected header, for a token type that contains its own key
 * (RFC 9449 section 4.2). Pass them to {@link parseHeader} afterwards. Does NOT verify anything.
 */
export function readHeaderMembers(token: string): Readonly<Record<string, unknown>> {
  refuseMalformed(token)
  const [header = ''] = token.split('.', 1)
  return objectIn(header, 'header_encoding', 'header_json')
}

/** Reads a token's claims, as strictly as its header. Does NOT verify anything. */
export function readPayload(token: string): Readonly<Record<string, unknown>> {
  const [, payload = ''] = token.split('.', 2)
  return objectIn(payload, 'payload_encoding', 'payload_json')
}

/** Shared by all tokens, because creating a decoder is a call into the platform. */
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function objectIn(segment: string, encoding: TokenCheck, json: TokenCheck) {
  let text: string
  try {
    text = UTF8.decode(base64url.decode(segment))
  } catch (cause) {
    throw rejected(encoding, { cause })
  }
  try {
    const value = parseStrictJson(text, { maxDepth: MAX_JSON_DEPTH })
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return value as Record<string, unknown>
    }
  } catch (cause) {
    throw rejected(json, { cause })
  }
  throw rejected(json)
}

/** Returns the used members of a protected header. Throws `Denied` as {@link readHeader} does. */
export function parseHeader(header: Readonly<Record<string, unknown>>): JwsHeader {
  const alg = readOwnMember(header, 'alg')
  // Null means that they are absent, as for claims.
  const kid = readOwnMember(header, 'kid') ?? undefined
  const typ = readOwnMember(header, 'typ') ?? undefined
  if (Object.hasOwn(header, 'crit')) throw rejected('crit')
  if (Object.hasOwn(header, 'b64')) throw rejected('b64')
  if (typeof alg !== 'string') throw rejected('alg')
  if (typ !== undefined && typeof typ !== 'string') throw rejected('typ')
  if (kid === undefined) return { alg, kid, typ }
  if (typeof kid !== 'string' || kid === '' || kid.length > MAX_KEY_ID_CHARS) throw rejected('kid')
  return { alg, kid, typ }
}

/** Returns a member of a parsed object, never of its prototype. */
export function readOwnMember(object: Readonly<Record<string, unknown>>, name: string): unknown {
  return Object.hasOwn(object, name) ? object[name] : undefined
}

/** A dot and 64 bytes in base64url. */
const ED25519_CHARACTERS = 87

/**
 * Throws `Denied` unless the signature of `token` is valid for exactly this key and algorithm. This verdict depends on
 * both alone. Throws `Unavailable` if the platform fails: the token may be valid. {@link readHeader} must accept the
 * token before.
 */
export async function verifySignature(token: string, key: VerificationKey): Promise<void> {
  // The platform may throw for another length, as workerd does.
  if (
    key.algorithm.startsWith('Ed') &&
    token.length - token.lastIndexOf('.') !== ED25519_CHARACTERS
  )
    throw rejected('signature')
  try {
    await compactVerify(token, key.cryptoKey, { algorithms: [key.algorithm] })
  } catch (cause) {
    if (!(cause instanceof JOSEError)) throw cause
    // jose adds what the platform threw. A signature that is not valid has no cause.
    throw cause.cause === undefined
      ? rejected('signature', { cause })
      : new Unavailable('gateway', 'refused', { cause })
  }
}

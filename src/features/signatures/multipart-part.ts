/** Inspects one part of a multipart body. */
import { Denied } from '../../errors.ts'
import { hasCoding } from '../../http/media-type.ts'
import { inspectJson } from '../../inspection/json.ts'
import type { ParametersSeen } from '../../inspection/judge.ts'
import type { InspectionLimits } from '../../inspection/limits.ts'
import { inspectedMedia, TYPES_WITH_MULTIPART } from '../../inspection/media.ts'
import { addName } from '../../inspection/parameters.ts'
import { malformed, refuseLine, refusePrototypeStep, refuseText } from '../../inspection/text.ts'

type PartHeaders = Readonly<Record<string, string | string[]>>

/** Encodings of a part that change no byte (RFC 2045 section 6.1). RFC 7578 deprecates the others. */
const IDENTITY = /^(?:7bit|8bit|binary)$/i
const FORM_DATA = /^form-data(?=;|$)/i
/** A parameter. Parsers differ in the meaning of a backslash before a quote. */
const PARAMETER = /[ \t]*;[ \t]*(name|filename\*?)=(?:"([^"]*)"|([^\s";=]+))/iy
/** `filename*` (RFC 8187), in the only charset of this gateway. */
const EXTENDED = /^utf-8'[\w-]*'((?:[\w!#$&+.^`|~-]|%[\da-f]{2})*)$/i
/** With this name, a form names its charset (RFC 7578 section 4.6). */
const CHARSET_FIELD = '_charset_'
const REPLACEMENT = '\ufffd'

/** Throws `Denied` for a body that two parsers could divide differently. */
export function refuseMultipart(): never {
  throw new Denied({ code: 'malformed_request', check: 'body_multipart' })
}

/** Inspects a part, and adds its texts to `seen`. Throws `Denied`. */
export function inspectPart(
  headers: PartHeaders,
  content: Uint8Array,
  limits: InspectionLimits,
  seen: ParametersSeen,
): void {
  const { name, filename } = dispositionOf(single(headers, 'content-disposition'))
  const type = single(headers, 'content-type')
  const encoding = single(headers, 'content-transfer-encoding')
  if (encoding !== undefined && !IDENTITY.test(encoding)) refuseMultipart()
  if (hasCoding(single(headers, 'content-encoding'))) refuseMultipart()
  if (name.length > limits.maxStringChars) throw malformed('body', 'length')
  refusePrototypeStep(name, 'body')
  addName(name, 'body', limits, seen)
  for (const header of Object.keys(headers)) {
    const value = single(headers, header) ?? ''
    if (header !== 'content-disposition') seen.scan?.add(value)
  }
  if (filename) {
    if (filename.length > limits.maxStringChars) throw malformed('body', 'length')
    seen.scan?.add(filename)
  } else if (content.length > 0) inspectField(name, type, content, limits, seen)
}

function inspectField(
  name: string,
  type: string | undefined,
  content: Uint8Array,
  limits: InspectionLimits,
  seen: ParametersSeen,
): void {
  const media = type === undefined ? 'text' : inspectedMedia(type)
  if (media === undefined || media === 'form')
    throw new Denied({
      code: 'unsupported_media_type',
      expected: TYPES_WITH_MULTIPART,
      encoded: false,
    })
  const text = decoded(content)
  if (name.toLowerCase() === CHARSET_FIELD && !/^utf-8$/i.test(text)) refuseMultipart()
  if (media === 'json') {
    inspectJson(text, limits, seen.scan)
    return
  }
  if (text.length > limits.maxStringChars) throw malformed('body', 'length')
  refuseText(text, 'body')
  seen.scan?.add(text)
}

function decoded(content: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(content)
  } catch {
    throw malformed('body', 'encoding')
  }
}

/** Returns the value of a header that must not be repeated. */
function single(headers: PartHeaders, name: string): string | undefined {
  const value = headers[name]
  if (value === undefined) return undefined
  if (typeof value !== 'string') return refuseMultipart()
  // The parser replaces bytes that are not UTF-8.
  if (value.includes(REPLACEMENT)) throw malformed('body', 'encoding')
  refuseLine(value, 'body')
  return value.trim()
}

interface Disposition {
  readonly name: string
  /** Undefined or empty for a field. */
  readonly filename: string | undefined
}

function dispositionOf(value: string | undefined): Disposition {
  const [type] = FORM_DATA.exec(value ?? '') ?? []
  if (value === undefined || type === undefined) return refuseMultipart()
  const found = new Map<string, string>()
  PARAMETER.lastIndex = type.length
  let end = type.length
  for (let part = PARAMETER.exec(value); part !== null; part = PARAMETER.exec(value)) {
    const [, key = '', quoted, token = ''] = part
    const text = quoted ?? token
    if (found.has(key.toLowerCase()) || text.endsWith('\\')) refuseMultipart()
    found.set(key.toLowerCase(), text)
    end = PARAMETER.lastIndex
  }
  const name = found.get('name')
  const extended = found.get('filename*')
  const filename = found.get('filename')
  if (end !== value.length || name === undefined) return refuseMultipart()
  if (extended === undefined) return { name, filename }
  const encoded = EXTENDED.exec(extended)?.[1]
  if (encoded === undefined || filename !== undefined) return refuseMultipart()
  return { name, filename: decodedName(encoded) }
}

function decodedName(encoded: string): string {
  try {
    return decodeURIComponent(encoded)
  } catch {
    throw malformed('body', 'encoding')
  }
}

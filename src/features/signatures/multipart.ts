/** Inspects bodies of the type `multipart/form-data` (RFC 7578), part by part. */
import { make, type PartInfo } from 'multipasta'
import { Denied } from '../../errors.ts'
import { utf8MediaType } from '../../http/media-type.ts'
import type { MultipartInspection } from '../../inspection/judge.ts'
import { malformed } from '../../inspection/text.ts'
import { inspectPart, refuseMultipart } from './multipart-part.ts'

/** A parameter `boundary` (RFC 2046 section 5.1.1), and the end of the parameter. */
const BOUNDARY =
  /;[ \t]{0,9}boundary=(?:"([\w'()+,./:=? -]{0,69}[\w'()+,./:=?-])"|([\w'+.-]{1,70}))[ \t]{0,9}(?:;|$)/i
const ANY_BOUNDARY = /boundary[*\d]{0,4}[ \t]{0,9}=/gi

/**
 * Returns the inspection of a multipart body; undefined for another `Content-Type`. It adds names,
 * values, names of files and media types to the scan. The inspection throws `Denied`
 * (`malformed_request`) for everything that two parsers could divide differently:
 * - more than one boundary, one that occurs in a part, text before the first or after the last one
 * - headers of a part that are not well formed, have no end, are repeated, or have a transfer encoding
 * - names, values and numbers of parts that a form may not have
 *
 * Does NOT inspect the content of files.
 */
export function multipartInspection(
  contentType: string | undefined,
): MultipartInspection | undefined {
  if (utf8MediaType(contentType) !== 'multipart/form-data' || contentType === undefined)
    return undefined
  return function inspectMultipart(body, limits, seen) {
    const boundary = boundaryOf(contentType)
    refuseLooseParts(body, boundary)
    let isDone = false
    let previous: PartInfo | undefined
    const parser = make({
      headers: { 'content-type': `multipart/form-data; boundary="${boundary}"` },
      // Files too: the whole body is in memory, and one callback gets each part.
      isFile: () => false,
      maxParts: limits.maxNames,
      maxFieldSize: Number.POSITIVE_INFINITY,
      onField(part, content) {
        // For a part whose headers it did not read, the parser repeats what it read before.
        if (part === previous) refuseMultipart()
        previous = part
        inspectPart(part.headers, content, limits, seen)
      },
      onFile: refuseMultipart,
      onError(error) {
        if (error._tag === 'ReachedLimit') throw malformed('body', 'names')
        refuseMultipart()
      },
      onDone() {
        isDone = true
      },
    })
    try {
      parser.write(body)
      parser.end()
    } catch (error) {
      // Of the parser itself, such as broken percent-encoding in `filename*`.
      if (!(error instanceof Denied)) refuseMultipart()
      throw error
    }
    if (!isDone) refuseMultipart()
  }
}

function boundaryOf(contentType: string): string {
  const [, quoted, token] = BOUNDARY.exec(contentType) ?? []
  const boundary = quoted ?? token
  if (boundary === undefined || contentType.match(ANY_BOUNDARY)?.length !== 1)
    return refuseMultipart()
  return boundary
}

/**
 * Throws unless each occurrence of the boundary is a whole delimiter line, and each part ends its
 * headers with an empty line. The parser would read the next part as more of these headers.
 */
function refuseLooseParts(body: Uint8Array, boundary: string): void {
  // One character for each byte.
  const text = new TextDecoder('latin1').decode(body)
  const delimiter = `--${boundary}`
  let at = text.indexOf(delimiter)
  if (at !== 0) refuseMultipart()
  while (at !== -1) {
    if (at > 0 && !text.startsWith('\r\n', at - 2)) refuseMultipart()
    const end = at + delimiter.length
    at = text.indexOf(delimiter, end)
    if (text.startsWith('\r\n', end)) {
      const emptyLine = text.indexOf('\r\n\r\n', end)
      // The CRLF before the next delimiter belongs to that delimiter.
      if (emptyLine === -1 || emptyLine + 4 > at - 2) refuseMultipart()
    } else if (at !== -1 || !/^--(?:\r\n)?$/.test(text.slice(end, end + 5))) refuseMultipart()
  }
}

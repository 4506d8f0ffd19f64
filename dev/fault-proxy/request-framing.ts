/** Finds the ends of HTTP/1.1 requests (RFC 9112 section 6), only to respond to each of them. */

const HEAD_END = '\r\n\r\n'
const HEXADECIMAL = 16

export interface RequestFraming {
  /** Adds bytes, and calls `onRequest` for each complete request. */
  push(data: Buffer): void
  /** Reports whether no incomplete request is pending. */
  isIdle(): boolean
}

/** Creates the framing for well-formed requests. Does NOT support trailers of chunked bodies. */
export function createRequestFraming(onRequest: () => void): RequestFraming {
  let text = ''

  /** Returns the length of the first request in `text`, or undefined if it is incomplete. */
  function wholeRequest(): number | undefined {
    const headEnd = text.indexOf(HEAD_END)
    if (headEnd < 0) return undefined
    const head = text.slice(0, headEnd)
    const bodyStart = headEnd + HEAD_END.length
    const end = /^transfer-encoding:.*chunked/im.test(head)
      ? endOfChunks(bodyStart)
      : bodyStart + Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0)
    return end !== undefined && end <= text.length ? end : undefined
  }

  function endOfChunks(start: number): number | undefined {
    let at = start
    for (;;) {
      const lineEnd = text.indexOf('\r\n', at)
      if (lineEnd < 0) return undefined
      const size = Number.parseInt(text.slice(at, lineEnd), HEXADECIMAL)
      at = lineEnd + 2 + size + 2
      if (size === 0 || at > text.length) return at
    }
  }

  return {
    push(data) {
      text += data.toString('latin1')
      for (let end = wholeRequest(); end !== undefined; end = wholeRequest()) {
        text = text.slice(end)
        onRequest()
      }
    },
    isIdle: () => text === '',
  }
}

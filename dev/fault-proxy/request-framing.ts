/** Where HTTP/1.1 requests end (RFC 9112 section 6): enough to answer each of them, and no more. */

const HEAD_END = '\r\n\r\n'
const HEXADECIMAL = 16

export interface RequestFraming {
  /** Takes bytes; calls `onRequest` for each request that is whole. */
  push(data: Buffer): void
  /** Nothing of a request has come that is not whole yet. */
  isIdle(): boolean
}

/** For well-formed requests of HTTP clients; chunked bodies must not have trailers. */
export function createRequestFraming(onRequest: () => void): RequestFraming {
  let text = ''

  /** Length of the first request in `text`, or `undefined` if it is not whole. */
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

/** Builds the bytes of the HTTP response that a fault describes. */
import type { LastingFault } from './fault.ts'

/** Returns the response exactly as described, even if it is invalid. */
export function answerBytes(fault: Extract<LastingFault, { kind: 'answer' }>): Buffer {
  const { status, headers = {}, body = '', bodyBase64 } = fault
  const octets =
    bodyBase64 === undefined ? Buffer.from(body, 'utf8') : Buffer.from(bodyBase64, 'base64')
  const isFramed = Object.keys(headers).some((name) =>
    ['content-length', 'transfer-encoding'].includes(name.toLowerCase()),
  )
  const lines = [
    `HTTP/1.1 ${status} Fault`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ...(isFramed ? [] : [`Content-Length: ${octets.length}`]),
    ...(fault.close ? ['Connection: close'] : []),
  ]
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), octets])
}

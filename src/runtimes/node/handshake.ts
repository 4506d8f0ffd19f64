/** Tries a certificate before a server uses it. */
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { duplexPair } from 'node:stream'
import { connect, createSecureContext, type SecureContextOptions, TLSSocket } from 'node:tls'

/** A handshake in memory takes milliseconds. */
const TIMEOUT_MS = 5_000

/**
 * Returns why clients could not connect with a certificate, after a handshake in memory. Undefined if
 * they could. Does NOT check that clients trust it, or its names.
 */
export async function faultOfCertificate(
  options: SecureContextOptions,
  nowMs: number = Date.now(),
): Promise<string | undefined> {
  try {
    const [certificate = ''] = certificatesIn(String(options.cert))
    const { validFromDate, validToDate } = new X509Certificate(certificate)
    if (validToDate.getTime() <= nowMs) return 'the certificate has expired'
    if (validFromDate.getTime() > nowMs) return 'the certificate is not valid yet'
    await shakeHands(options)
    return undefined
  } catch {
    return 'a handshake with the certificate fails'
  }
}

/** Returns the certificates of a text in PEM. Throws if one is cut off or unreadable, or there is none. */
export function certificatesIn(text: string): readonly string[] {
  const begun = text.match(/-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----/g) ?? []
  const whole =
    text.match(
      /-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----[^-]+-----END (?:X509 |TRUSTED )?CERTIFICATE-----/g,
    ) ?? []
  if (whole.length === 0 || whole.length !== begun.length) throw new Error('incomplete PEM')
  for (const one of whole) new X509Certificate(one)
  return whole
}

async function shakeHands(options: SecureContextOptions): Promise<void> {
  const [ofServer, ofClient] = duplexPair()
  const server = new TLSSocket(ofServer, {
    isServer: true,
    secureContext: createSecureContext(options),
  })
  const client = connect({ socket: ofClient, rejectUnauthorized: false })
  const failed = Promise.race([once(server, 'close'), once(client, 'close')]).then(() => {
    throw new Error('the connection has ended')
  })
  failed.catch(() => {})
  for (const socket of [server, client]) socket.on('error', () => socket.destroy())
  const timer = setTimeout(() => client.destroy(), TIMEOUT_MS)
  try {
    await Promise.race([once(client, 'secureConnect'), failed])
  } finally {
    clearTimeout(timer)
    client.destroy()
    server.destroy()
  }
}

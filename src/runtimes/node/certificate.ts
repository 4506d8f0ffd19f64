/** The certificate of the server, which is read again when its files change. */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Server } from 'node:https'
import { createSecureContext, type SecureContextOptions } from 'node:tls'
import { Misconfigured } from '../../errors.ts'
import { mistakeAt } from '../../problems/mistake.ts'
import { certificatesIn, faultOfCertificate } from './handshake.ts'

/** The names of the files. Each is set, or none. */
export interface CertificateFiles {
  /** PEM: the certificate, and those between it and a root that clients trust. */
  readonly TLS_CERT_FILE?: string | undefined
  /** PEM, without a passphrase. */
  readonly TLS_KEY_FILE?: string | undefined
}

/**
 * Ciphers with forward secrecy and authenticated encryption: all of TLS 1.3, and those of TLS 1.2 that
 * RFC 9325 section 4.2 recommends, with ChaCha20 for clients without AES in hardware.
 */
const CIPHERS = [
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_AES_128_GCM_SHA256',
  ...['ECDSA', 'RSA'].flatMap((key) => [
    `ECDHE-${key}-AES128-GCM-SHA256`,
    `ECDHE-${key}-AES256-GCM-SHA384`,
    `ECDHE-${key}-CHACHA20-POLY1305`,
  ]),
].join(':')

/** Tools that renew certificates give no sign. Comparing two small files costs nothing. */
const CHECK_INTERVAL_MS = 10_000
const DAY_MS = 86_400_000
/** The log warns in the last seven days, or in the last third of a shorter life. */
const MAX_WARNING_MS = 7 * DAY_MS

/**
 * Reads the files, if they are set. Throws `Misconfigured` if one is not readable, or if only one
 * is set, or if they do not belong together.
 */
export function readCertificate({
  TLS_CERT_FILE,
  TLS_KEY_FILE,
}: CertificateFiles): SecureContextOptions | undefined {
  if (TLS_CERT_FILE === undefined && TLS_KEY_FILE === undefined) return undefined
  if (TLS_CERT_FILE === undefined)
    throw mistake('TLS_CERT_FILE', 'is missing; TLS_KEY_FILE requires it')
  if (TLS_KEY_FILE === undefined)
    throw mistake('TLS_KEY_FILE', 'is missing; TLS_CERT_FILE requires it')
  const certificate = {
    cert: readPem('TLS_CERT_FILE', TLS_CERT_FILE),
    key: readPem('TLS_KEY_FILE', TLS_KEY_FILE),
    minVersion: 'TLSv1.2',
    ciphers: CIPHERS,
  } as const
  try {
    certificatesIn(certificate.cert)
    createSecureContext(certificate)
    // OpenSSL accepts an absent key, and then fails at each handshake.
    createPrivateKey(certificate.key)
  } catch {
    const message = 'TLS_CERT_FILE and TLS_KEY_FILE: are no certificate in PEM and its private key'
    throw new Misconfigured('The environment', [
      { code: 'invalid_value', path: ['TLS_CERT_FILE'], message },
    ])
  }
  return certificate
}

function readPem(variable: string, file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw mistake(variable, `${file} cannot be read (${code})`)
  }
}

const mistake = (variable: string, what: string) =>
  new Misconfigured('The environment', [mistakeAt('invalid_value', [variable], what)])

/**
 * Compares the files with `current` every ten seconds, and uses them for new connections when they have
 * changed and a handshake with the new certificate succeeds. Otherwise that is logged, and the old one
 * stays. Warns once a day of a certificate that expires soon, or has expired. Returns a function that does it now,
 * and never rejects.
 */
export function followCertificate(
  server: Server,
  files: CertificateFiles,
  current: SecureContextOptions,
): () => Promise<void> {
  let used = current
  let reported = ''
  const warn = createExpiryWarning()
  warn(used)
  async function reload(): Promise<void> {
    await replace()
    warn(used)
  }
  async function replace(): Promise<void> {
    try {
      const certificate = readCertificate(files)
      if (certificate === undefined) return
      if (certificate.cert === used.cert && certificate.key === used.key) return
      const fault = await faultOfCertificate(certificate)
      if (fault !== undefined) throw mistake('TLS_CERT_FILE', fault)
      server.setSecureContext(certificate)
      used = certificate
      reported = ''
      console.log('certificate: changed')
    } catch (error) {
      const text = error instanceof Misconfigured ? error.mistakes.join() : 'not usable'
      if (text !== reported) console.error(`certificate: the old one stays; ${text}`)
      reported = text
    }
  }
  const timer = setInterval(reload, CHECK_INTERVAL_MS).unref()
  server.once('close', () => clearInterval(timer))
  return reload
}

/** Creates a function that logs when a certificate expires, once a day. */
function createExpiryWarning() {
  let nextMs = 0
  let warned: unknown
  return function warn({ cert }: SecureContextOptions): void {
    const nowMs = Date.now()
    if (cert === warned && nowMs < nextMs) return
    warned = cert
    nextMs = nowMs + CHECK_INTERVAL_MS
    const [first = ''] = certificatesIn(String(cert))
    const { validFromDate, validToDate } = new X509Certificate(first)
    const endMs = validToDate.getTime()
    const lifeMs = endMs - validFromDate.getTime()
    if (endMs - nowMs > Math.min(MAX_WARNING_MS, lifeMs / 3)) return
    nextMs = nowMs + DAY_MS
    const verb = endMs <= nowMs ? 'has expired at' : 'expires at'
    console.error(`certificate: TLS_CERT_FILE ${verb} ${validToDate.toISOString()}`)
  }
}

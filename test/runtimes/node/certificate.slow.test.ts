/** Renewals of a certificate that fail half-way, against a real server with TLS. */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ConnectionOptions, connect } from 'node:tls'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { followCertificate, readCertificate } from '../../../src/runtimes/node/certificate.ts'
import { writeAuthority, writeCertificate } from '../../harness/certificate.ts'

const folder = mkdtempSync(join(tmpdir(), 'portcullis-certificate-'))
const files = { TLS_CERT_FILE: join(folder, 'tls.pem'), TLS_KEY_FILE: join(folder, 'tls.key') }
const read = (name: string) => readFileSync(join(folder, name), 'utf8')
let server: Server
let reload: () => Promise<void>

function use(cert: string, key: string): void {
  writeFileSync(files.TLS_CERT_FILE, cert)
  writeFileSync(files.TLS_KEY_FILE, key)
}

/** Returns the name in the certificate that a new client gets. */
async function served(): Promise<unknown> {
  const { port } = server.address() as AddressInfo
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  const { subject } = socket.getPeerCertificate()
  socket.destroy()
  return subject.CN
}

beforeAll(async () => {
  writeAuthority(folder)
  for (const name of ['first', 'second']) writeCertificate(folder, name)
  const old =
    'x509 -req -in second.csr -CA ca.pem -CAkey ca.key -out old.pem -not_before 20200101000000Z -not_after 20200102000000Z'
  const early =
    'x509 -req -in second.csr -CA ca.pem -CAkey ca.key -out early.pem -not_before 21000101000000Z -not_after 21000102000000Z'
  for (const command of [old, early]) {
    try {
      execFileSync('openssl', command.split(' '), { cwd: folder, stdio: 'pipe' })
    } catch {
      // Only OpenSSL 3.4 has these options. Their cases are skipped without them.
    }
  }
  use(read('first.pem'), read('first.key'))
  const certificate = readCertificate(files)
  if (certificate === undefined) throw new Error('no certificate')
  server = createServer(certificate, (_, response) => response.end())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  reload = followCertificate(server, files, certificate)
})
afterAll(() => {
  server?.close()
  rmSync(folder, { recursive: true })
})

test('a certificate that expires soon, or has expired, is in the log once a day', async () => {
  const lines: string[] = []
  vi.useFakeTimers({ toFake: ['Date'] })
  vi.spyOn(console, 'error').mockImplementation((line) => void lines.push(String(line)))
  try {
    const hour = 3_600_000
    const nowMs = Date.now()
    // It lives for two days, so that the last 16 hours are its last third.
    for (const hours of [0, 30, 33, 34, 35, 59, 60]) {
      vi.setSystemTime(nowMs + hours * hour)
      await reload()
    }
    expect(lines).toEqual([
      expect.stringMatching(/^certificate: TLS_CERT_FILE expires at 20/),
      expect.stringMatching(/^certificate: TLS_CERT_FILE has expired at 20/),
    ])
  } finally {
    vi.useRealTimers()
    vi.restoreAllMocks()
  }
})

/** Returns the protocol and the cipher of a handshake, or `refused`. */
function handshake(options: ConnectionOptions): Promise<string> {
  const { port } = server.address() as AddressInfo
  const { promise, resolve } = Promise.withResolvers<string>()
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...options })
  socket.once('secureConnect', () => resolve(`${socket.getProtocol()} ${socket.getCipher().name}`))
  socket.once('error', () => resolve('refused'))
  return promise.finally(() => socket.destroy())
}

test.each([
  'ECDHE-RSA-AES128-SHA256',
  'ECDHE-RSA-AES256-SHA',
  'AES128-GCM-SHA256',
  'AES256-SHA',
  'DHE-RSA-AES128-GCM-SHA256',
])('a client whose only cipher is %s is refused (RFC 9325 section 4.2)', async (ciphers) => {
  expect(await handshake({ maxVersion: 'TLSv1.2', ciphers })).toBe('refused')
})

test.each([
  ['TLSv1.2', 'ECDHE-RSA-AES128-GCM-SHA256'],
  ['TLSv1.2', 'ECDHE-RSA-AES256-GCM-SHA384'],
  ['TLSv1.2', 'ECDHE-RSA-CHACHA20-POLY1305'],
  ['TLSv1.3', 'TLS_AES_128_GCM_SHA256'],
  ['TLSv1.3', 'TLS_AES_256_GCM_SHA384'],
] as const)('a client with %s and %s is served', async (maxVersion, ciphers) => {
  expect(await handshake({ maxVersion, ciphers })).toBe(`${maxVersion} ${ciphers}`)
})

test.each<[string, () => readonly [string, string]]>([
  ['two empty files', () => ['', '']],
  ['an empty certificate', () => ['', read('second.key')]],
  ['an empty key', () => [read('second.pem'), '']],
  ['a blank certificate', () => ['\n \n', read('second.key')]],
  ['half a certificate', () => [read('second.pem').slice(0, 500), read('second.key')]],
  ['half a key', () => [read('second.pem'), read('second.key').slice(0, 500)]],
  [
    'a chain whose second certificate is cut off',
    () => [read('second.pem') + read('ca.pem').slice(0, 500), read('second.key')],
  ],
  ['the key of another certificate', () => [read('second.pem'), read('first.key')]],
  ['a chain in the wrong order', () => [read('ca.pem') + read('second.pem'), read('second.key')]],
  ['other text', () => ['<html>', '<html>']],
  ['files in each other’s place', () => [read('second.key'), read('second.pem')]],
])('the old certificate stays after a renewal with %s', async (_, renewed) => {
  use(...renewed())
  await reload()
  expect(await served()).toBe('first')
})

test.each(['old', 'early'])(
  'the old certificate stays after a renewal with the dates of %s.pem',
  async (name) => {
    let text: string
    try {
      text = read(`${name}.pem`)
    } catch {
      return
    }
    use(text, read('second.key'))
    await reload()
    expect(await served()).toBe('first')
  },
)

test('a complete pair is used, with a whole chain and text around it', async () => {
  use(`subject=second\n${read('second.pem')}\n${read('ca.pem')}`, read('second.key'))
  await reload()
  expect(await served()).toBe('second')
})

test('a server does not start with files that hold no certificate', () => {
  for (const [cert, key] of [
    ['', ''],
    [read('second.pem'), ''],
    [read('second.pem').slice(0, 500), read('second.key')],
  ] as const) {
    use(cert, key)
    expect(() => readCertificate(files)).toThrow('TLS_CERT_FILE and TLS_KEY_FILE')
  }
})

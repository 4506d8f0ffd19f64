/** A server with TLS on `localhost` in front of a server without it. Needs `openssl`. */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { createServer } from 'node:https'
import { join } from 'node:path'

/** Files of a certificate for `localhost`. */
export interface Certificate {
  readonly certificateFile: string
  readonly keyFile: string
}

/** Writes a certificate that signs itself, valid for a day, into a folder. */
export function writeCertificate(folder: string): Certificate {
  const subject = '-subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1'
  const command = `req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 1 ${subject}`
  execFileSync('openssl', command.split(' '), { cwd: folder, stdio: 'pipe' })
  return { certificateFile: join(folder, 'cert.pem'), keyFile: join(folder, 'key.pem') }
}

/** Forwards requests on `port` to `targetPort` on this machine. Returns a function that ends it. */
export async function startSecureFront(
  { certificateFile, keyFile }: Certificate,
  port: number,
  targetPort: number,
): Promise<() => void> {
  const tls = { cert: readFileSync(certificateFile), key: readFileSync(keyFile) }
  const server = createServer({ ...tls, maxHeaderSize: 65_536 }, (incoming, response) => {
    const headers = {
      ...incoming.headers,
      'x-forwarded-proto': 'https',
      'x-forwarded-port': `${port}`,
    }
    const { method, url: path } = incoming
    // Each request has its own connection: the target closes idle ones, and a request on them would fail.
    const target = { host: '127.0.0.1', port: targetPort, agent: false }
    const forwarded = request({ ...target, method, path, headers })
    forwarded.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    forwarded.on('error', () => response.destroy())
    response.on('close', () => forwarded.destroy())
    incoming.pipe(forwarded)
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return () => {
    server.closeAllConnections()
    server.close()
  }
}

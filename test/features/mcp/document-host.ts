/** Hosts the metadata document of a client over TLS, as official clients require. Needs `openssl`. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { writeAuthority, writeCertificate } from '../../harness/certificate.ts'

/** Serves what `document` returns for its URL. This process trusts the certificate until `close`. */
export async function hostDocument(document: (url: string) => object) {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-document-'))
  writeAuthority(folder)
  writeCertificate(folder, 'host')
  const read = (name: string) => readFileSync(join(folder, name), 'utf8')
  const trusted = getCACertificates('default')
  setDefaultCACertificates([...trusted, read('ca.pem')])
  let url = ''
  const server = createServer({ key: read('host.key'), cert: read('host.pem') }, (_, response) =>
    response.setHeader('Content-Type', 'application/json').end(JSON.stringify(document(url))),
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/client.json`
  rmSync(folder, { recursive: true })
  return {
    url,
    async close() {
      setDefaultCACertificates(trusted)
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

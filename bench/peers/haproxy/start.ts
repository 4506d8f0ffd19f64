/** HAProxy, which verifies tokens itself and counts by subject in memory. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../../dev/free-port.ts'
import { IN_MEMORY, type Peer } from '../peer.ts'
import { startServer, versionOf, writeConfig } from '../server.ts'

export const haproxy: Peer = {
  ...IN_MEMORY,
  id: 'haproxy',
  title: 'HAProxy',
  inQuick: true,
  compiles: false,
  does: { ...IN_MEMORY.does, cachesTokens: 'no' },
  async start({ backends, publicKey, issuer, limit, directory }) {
    const port = await freePort()
    const key = join(directory, 'issuer.pem')
    writeFileSync(key, publicKey)
    const { host: origin } = new URL(backends.originUrl)
    const values = { port, origin, issuer, key, limit }
    const file = writeConfig(directory, 'haproxy/haproxy.cfg', values)
    const server = await startServer({
      program: 'haproxy',
      args: ['-q', '-db', '-f', file],
      port,
      directory,
    })
    return { ...server, version: `HAProxy ${await versionOf('haproxy', '-v')}` }
  },
}

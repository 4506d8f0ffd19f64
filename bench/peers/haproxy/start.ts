/** HAProxy, which verifies tokens itself and counts by subject in memory. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../processes/proc.ts'
import type { Peer } from '../peer.ts'
import { startServer, versionOf, writeConfig } from '../server.ts'

export const haproxy: Peer = {
  id: 'haproxy',
  title: 'HAProxy',
  optional: true,
  inQuick: true,
  compiles: false,
  refuses: { missing: 401, forged: 401, expired: 401 },
  identifies: true,
  redisCalls: [0, 0],
  does: {
    cachesTokens: 'no',
    revokes: 'no',
    limit: 'in its memory',
    audit: 'no',
    identity: 'subject',
  },
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

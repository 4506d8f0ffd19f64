/** nginx as a bare proxy with kept connections: the minimum cost of forwarding a request. */
import { freePort } from '../../../dev/free-port.ts'
import type { Peer } from '../peer.ts'
import { startServer, versionOf, writeConfig } from '../server.ts'

export const nginx: Peer = {
  id: 'nginx',
  title: 'nginx, bare proxy',
  optional: true,
  inQuick: true,
  compiles: false,
  refuses: {},
  identifies: false,
  redisCalls: [0, 0],
  does: { cachesTokens: '-', revokes: 'no', limit: 'no', audit: 'no', identity: 'no' },
  async start({ backends, directory }) {
    const port = await freePort()
    const { host: origin } = new URL(backends.originUrl)
    const file = writeConfig(directory, 'nginx/nginx.conf', { port, origin })
    const server = await startServer({
      program: 'nginx',
      args: ['-p', directory, '-c', file, '-e', 'stderr'],
      port,
      directory,
    })
    return { ...server, version: `nginx ${await versionOf('nginx', '-v')}` }
  },
}

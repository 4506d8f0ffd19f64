/** Fastify with its own plugins, on Node. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../../dev/free-port.ts'
import { IN_MEMORY, type Peer } from '../peer.ts'
import { installed, startServer } from '../server.ts'

export const fastify: Peer = {
  ...IN_MEMORY,
  id: 'fastify',
  title: 'Fastify',
  inQuick: false,
  compiles: true,
  refuses: { ...IN_MEMORY.refuses, powerless: 403, 'bad-query': 400, ambiguous: 404 },
  async start({ backends, publicKey, issuer, limit, directory, signal }) {
    const home = await installed(
      {
        name: 'fastify',
        files: ['server.js', 'package.json', 'package-lock.json'],
        commands: [['npm', 'ci', '--ignore-scripts', '--no-audit', '--no-fund']],
      },
      signal,
    )
    const port = await freePort()
    const server = await startServer({
      program: process.execPath,
      args: [join(home, 'server.js')],
      env: {
        NODE_ENV: 'production',
        PORT: String(port),
        ORIGIN_URL: backends.originUrl,
        ISSUER: issuer,
        PUBLIC_KEY: publicKey,
        LIMIT: String(limit),
      },
      port,
      directory,
    })
    const lock = readFileSync(join(home, 'package.json'), 'utf8')
    const { dependencies } = JSON.parse(lock) as { dependencies: Record<string, string> }
    return { ...server, version: `Fastify ${dependencies.fastify}` }
  },
}

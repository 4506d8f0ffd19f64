/** The configuration of Envoy: tokens are verified and remembered, subjects counted. */
import { HOST } from '../../../dev/start/settings.ts'

/** A bucket without a subject: nobody comes to it. */
const ROOMY = 1_000_000_000
/** More subjects and tokens than a run has; by default Envoy keeps the buckets of 20 and 100 tokens. */
const REMEMBERED = 1_000
const TYPE = 'type.googleapis.com/envoy.extensions'
const SUBJECT_HEADER = 'x-auth-subject'

export interface EnvoyOptions {
  readonly port: number
  /** Of the origin, on loopback. */
  readonly originPort: number
  /** And audience. */
  readonly issuer: string
  /** Public JWKS, JSON. */
  readonly jwks: string
  /** Requests of a subject within 60 s. */
  readonly limit: number
}

/** Returns what Envoy reads as JSON. Its threads are told on the command line. */
export function envoyConfig(options: EnvoyOptions): object {
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

/** A bucket for each subject that it meets. */
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

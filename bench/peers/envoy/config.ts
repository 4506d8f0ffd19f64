/** Generates Envoy's configuration: verifies and caches tokens, and counts by subject. */
import { HOST } from '../../../dev/start/settings.ts'

/** The bucket for requests without a subject, which do not occur. */
const ROOMY = 1_000_000_000
/** More subjects and tokens than a run has. Envoy's defaults are 20 buckets and 100 tokens. */
const REMEMBERED = 1_000
const TYPE = 'type.googleapis.com/envoy.extensions'
const SUBJECT_HEADER = 'x-auth-subject'

export interface EnvoyOptions {
  readonly port: number
  /** Port of the origin on loopback. */
  readonly originPort: number
  /** Issuer and audience. */
  readonly issuer: string
  /** Public JWK Set, JSON. */
  readonly jwks: string
  /** Requests per subject in 60 s. */
  readonly limit: number
}

/** Returns the configuration, which Envoy reads as JSON. The command line sets its threads. */
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

/** Returns a rate limiter with one bucket for each subject. */
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

/** Checked options and environment variables of `npm start` and `portcullis dev`. */
import { existsSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { isNamedByPolicy } from '../../src/validators/environment.ts'
import { ROOT } from '../root.ts'

export { ROOT }

/** Loopback by address, because `localhost` may resolve to `::1` first. */
export const HOST = '127.0.0.1'
const DEFAULT_PORT = 8787

/** The environment variables, for the help of both commands. */
const ENVIRONMENT_HELP = `Environment, all optional:
  PORT                      port of the gateway (default: ${DEFAULT_PORT})
  REDIS_URL                 a Redis to use, redis://host:port (default: redis-server from the PATH,
                            else an embedded one). A gateway on Node can also use Sentinels or a
                            cluster, with REDIS_FENCE_MS, REDIS_REPLICAS_ACKED and REDIS_EVICTION
  UPSTASH_REDIS_REST_URL    an Upstash REST endpoint to use; then no local Redis is started
  UPSTASH_REDIS_REST_TOKEN  its token
  REDIS_PREFIX              beginning of all keys in Redis (default: pc:)
  REDIS_TIMEOUT_MS          deadline of a call to Redis (default: 1000 with the local REST server,
                            250 with Upstash)
  ORIGIN_URL                the origin (default: the demo origin)
  PORTCULLIS_CONFIG         another policy file (default: portcullis.config.ts)
  ISSUERS                   trusted issuers of tokens, JSON
  ISSUER_CLIENTS            the gateway as a client of issuers with introspection, JSON
  PUBLIC_URL                URL of the gateway for clients (default: http://${HOST}:<PORT>)
  SIGNING_KEYS              private JWKS (default: created on first use, stored in .dev.vars)
  CLIENTS                   OAuth clients, JSON; one for the operator of this checkout is added
  METRICS_ACCESS            who may read /-/metrics: operators, or public (default: public)
  OTLP_ENDPOINT             a collector of traces (OTLP/HTTP), with OTLP_HEADERS for its credentials
  OTLP_SAMPLE_RATIO         share of new traces that are sent to it (default: 1)
  AUDIT_ADDRESSES           form of addresses in the audit trail: full, truncated or hashed
  AUDIT_ADDRESS_KEY         key for hashed
  OPENFGA_URL               an OpenFGA server that checks relations, with OPENFGA_STORES (JSON, by
                            tenant) and OPENFGA_TOKEN
  AUTHZEN_URLS              AuthZEN servers that check relations (JSON, by tenant), with
                            AUTHZEN_TOKEN and AUTHZEN_CONTEXT: refuse or ignore
  AUTHORITY_TIMEOUT_MS      deadline of a call to either of them (default: 250)
  AUDIT_DATABASE            file of the audit trail of a gateway on Node: sqlite:, and a path
  TRUSTED_PROXIES           networks of proxies in front of a gateway on Node (default: none), with
                            PROXY_HEADER, PROXY_TARGET_HEADERS, PROXY_COUNTRY_HEADER and
                            PROXY_CITY_HEADER (docs/node.md)`

export const USAGE = `npm start [-- --verbose]
npm run start:node

Runs Portcullis on this machine: Redis, the Upstash REST server over it, the demo origin, the
audit consumer and the gateway. Ctrl-C stops all of them. With start:node, the gateway runs on Node,
with Redis over RESP.

  --verbose   prints the whole output of wrangler
  --json      prints JSON: an object with the URL, then each decision in a line
  --help

${ENVIRONMENT_HELP}`

/** Checked settings. Undefined: use the default. */
export interface Settings {
  readonly port: number
  readonly verbose: boolean
  /** Whether stdout gets JSON: the URL, and then each decision in a line. */
  readonly json: boolean
  /** Whether the gateway runs on Node, not in workerd. */
  readonly onNode: boolean
  readonly redisUrl: string | undefined
  readonly upstash: { readonly url: string; readonly token: string } | undefined
  /** Absolute path of another policy file. */
  readonly policyFile: string | undefined
  readonly publicUrl: string | undefined
  /** Variables that are passed to the gateway unchanged, if they are set. */
  readonly gatewayVars: Readonly<Record<string, string>>
}

const PASSED_THROUGH = [
  'REDIS_PREFIX',
  'REDIS_TIMEOUT_MS',
  'REDIS_FENCE_MS',
  'REDIS_REPLICAS_ACKED',
  'REDIS_EVICTION',
  'ORIGIN_URL',
  'ISSUERS',
  'ISSUER_CLIENTS',
  'SIGNING_KEYS',
  'CLIENTS',
  'METRICS_ACCESS',
  'OTLP_ENDPOINT',
  'OTLP_HEADERS',
  'OTLP_SAMPLE_RATIO',
  'AUDIT_ADDRESSES',
  'AUDIT_ADDRESS_KEY',
  'OPENFGA_URL',
  'OPENFGA_STORES',
  'OPENFGA_TOKEN',
  'AUTHZEN_URLS',
  'AUTHZEN_TOKEN',
  'AUTHZEN_CONTEXT',
  'AUTHORITY_TIMEOUT_MS',
  'SIGNAL_TRANSMITTERS',
  'DEPLOYED_BY',
  'AUDIT_DATABASE',
  'TRUSTED_PROXIES',
  'FORWARD_AUTH_PORT',
  'FORWARD_AUTH_HOST',
  'PROXY_HEADER',
  'PROXY_TARGET_HEADERS',
  'PROXY_COUNTRY_HEADER',
  'PROXY_CITY_HEADER',
] as const

/**
 * Parses the settings. Throws an `Error` of one line if they are invalid. Relative paths are
 * relative to `cwd`.
 */
export function readSettings(
  argv: readonly string[],
  env: NodeJS.ProcessEnv,
  cwd: string,
): Settings | 'help' {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      node: { type: 'boolean' },
      verbose: { type: 'boolean' },
      json: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help) return 'help'
  const given = (name: string) => env[name] || undefined
  return {
    port: port(given('PORT')),
    verbose: values.verbose ?? false,
    json: values.json ?? false,
    onNode: values.node ?? false,
    redisUrl: given('REDIS_URL'),
    upstash: upstash(given('UPSTASH_REDIS_REST_URL'), given('UPSTASH_REDIS_REST_TOKEN')),
    policyFile: policyFile(given('PORTCULLIS_CONFIG'), cwd),
    publicUrl: given('PUBLIC_URL'),
    gatewayVars: Object.fromEntries(
      [...PASSED_THROUGH, ...originVariables(env)].flatMap((name) => {
        const value = given(name)
        return value === undefined ? [] : [[name, value]]
      }),
    ),
  }
}

/** The variables that a policy names. */
const originVariables = (env: NodeJS.ProcessEnv): readonly string[] =>
  Object.keys(env).filter(isNamedByPolicy)

/** Returns the default issuer and audience of tokens. */
export function defaultPublicUrl(port = DEFAULT_PORT): string {
  return `http://${HOST}:${port}`
}

function port(text = String(DEFAULT_PORT)): number {
  const number = /^\d{1,5}$/.test(text) ? Number(text) : 0
  if (number < 1 || number > 65_535) throw new Error('PORT must be a number from 1 to 65535')
  return number
}

function upstash(url: string | undefined, token: string | undefined): Settings['upstash'] {
  if (url === undefined && token === undefined) return undefined
  if (url === undefined) {
    throw new Error('UPSTASH_REDIS_REST_TOKEN is given without UPSTASH_REDIS_REST_URL')
  }
  if (token === undefined) {
    throw new Error('UPSTASH_REDIS_REST_URL is given without UPSTASH_REDIS_REST_TOKEN')
  }
  if (!/^https?:/.test(url) || !URL.canParse(url)) {
    throw new Error('UPSTASH_REDIS_REST_URL must be an http or https URL')
  }
  return { url, token }
}

function policyFile(path: string | undefined, cwd: string): string | undefined {
  if (path === undefined) return undefined
  const file = resolve(cwd, path)
  if (!existsSync(file) || !statSync(file).isFile()) {
    throw new Error(`PORTCULLIS_CONFIG: there is no file ${file}`)
  }
  return file
}

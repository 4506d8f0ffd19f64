/** Variables of one gateway, checked with the gateway's own schema before anything starts. */
import { Misconfigured } from '../../src/errors.ts'
import { parseConfig, type WholeConfig } from '../../src/features/environment.ts'
import { mistakeAt } from '../../src/problems/mistake.ts'
import { BOTH_HAVE_ISSUERS } from '../../src/validators/environment.ts'
import { type DevVars, line } from '../dev-vars.ts'
import { clientsWithOperator } from './operator-client.ts'
import type { Settings } from './settings.ts'

const JSON_VARIABLES = ['ISSUERS', 'ISSUER_CLIENTS', 'SIGNING_KEYS', 'CLIENTS']
/** Variables for the command line only. The gateway needs only the secret's hash. */
const CREDENTIALS = ['PORTCULLIS_CLIENT_ID', 'PORTCULLIS_CLIENT_SECRET']

/** Public, because local metrics are only reachable from this machine. */
const LOCAL_METRICS_ACCESS = 'public'

/**
 * The local REST server, Redis and all Workers share this machine, so Redis replies late under
 * load. A remote Upstash database keeps the gateway's own default.
 */
const LOCAL_REDIS_TIMEOUT_MS = '1000'

/** Replaces the service binding, which only a Worker has. */
const DEMO_ORIGIN = { fetch() {} }

export type GatewayVars = DevVars & {
  readonly UPSTASH_REDIS_REST_URL: string
  /** Undefined without an authorization server. */
  readonly CLIENTS?: string | undefined
  readonly METRICS_ACCESS: string
}

/** The parts of a policy that affect the variables. */
interface KnownPolicy {
  readonly authorizationServer: boolean
  /** `ISSUERS`, if the policy has the issuers itself. */
  readonly issuers?: string | undefined
}

/**
 * Merges the settings with `.dev.vars`. The settings have priority. The operator's client is added to
 * `CLIENTS` if the policy has an authorization server. Throws `Misconfigured` that names every
 * mistake. Without `policy`, which may have the issuers, clients of issuers are not checked yet.
 */
export function gatewayVars(
  settings: Settings,
  devVars: DevVars,
  publicUrl: string,
  redisRest: { readonly url: string; readonly token: string },
  policy?: KnownPolicy,
): GatewayVars {
  const hasAuthorizationServer = policy?.authorizationServer ?? true
  const clients = settings.gatewayVars.CLIENTS ?? devVars.CLIENTS
  const vars: GatewayVars = {
    METRICS_ACCESS: LOCAL_METRICS_ACCESS,
    ...(settings.upstash === undefined && { REDIS_TIMEOUT_MS: LOCAL_REDIS_TIMEOUT_MS }),
    ...devVars,
    ...settings.gatewayVars,
    PUBLIC_URL: publicUrl,
    UPSTASH_REDIS_REST_URL: redisRest.url,
    UPSTASH_REDIS_REST_TOKEN: redisRest.token,
    CLIENTS: hasAuthorizationServer ? clientsWithOperator(devVars, clients) : clients,
  }
  const isKnown = policy !== undefined || vars.ISSUERS !== undefined
  configOf(isKnown ? vars : { ...vars, ISSUER_CLIENTS: undefined }, policy?.issuers)
  return vars
}

/**
 * Parses the variables as the gateway does. Throws `Misconfigured` that names every mistake. `issuers` is
 * `ISSUERS` of a policy with issuers of its own.
 */
export function configOf(vars: GatewayVars, issuers?: string): WholeConfig {
  if (issuers !== undefined && vars.ISSUERS !== undefined)
    throw new Misconfigured('The environment', [
      mistakeAt('conflict', ['ISSUERS'], BOTH_HAVE_ISSUERS),
    ])
  const origin = vars.ORIGIN_URL === undefined && { ORIGIN: DEMO_ORIGIN }
  return parseConfig({ ...vars, ...(issuers !== undefined && { ISSUERS: issuers }), ...origin })
}

/**
 * Returns the variables for an app. `ISSUERS` contains the gateway's own keys, because an app does
 * not read `SIGNING_KEYS`.
 */
export function appVars(vars: GatewayVars): GatewayVars {
  const { issuers, publicUrl } = configOf(vars)
  const own = issuers.find(({ issuer }) => issuer === publicUrl)
  const named = JSON.parse(vars.ISSUERS ?? '[]') as readonly unknown[]
  const entry = { issuer: publicUrl, audience: publicUrl, jwks: own?.jwks }
  return { ...vars, ISSUERS: JSON.stringify([...named, entry]) }
}

/**
 * Returns the text of an environment file for `wrangler dev --env-file`, which expands `$NAME`.
 * Omits the credentials of the command line.
 */
export function environmentFile(vars: GatewayVars): string {
  return Object.entries(vars)
    .filter((entry): entry is [string, string] => entry[1] !== undefined)
    .filter(([name]) => !CREDENTIALS.includes(name))
    .map(([name, value]) => {
      const text = JSON_VARIABLES.includes(name) ? oneLine(value) : value
      return `${line(name, text.replaceAll('$', '\\$'))}\n`
    })
    .join('')
}

/** Returns the same JSON without new lines and quotes that an environment file cannot contain. */
function oneLine(json: string): string {
  return JSON.stringify(JSON.parse(json)).replaceAll("'", '\\u0027')
}

/** The variables of one gateway, checked by the gateway's own schema before anything starts. */
import { type Config, parseConfig } from '../../src/config.ts'
import { type DevVars, line } from '../dev-vars.ts'
import { clientsWithOperator } from './operator-client.ts'
import type { Settings } from './settings.ts'

const JSON_VARIABLES = ['ISSUERS', 'SIGNING_KEYS', 'CLIENTS']
/** What only the command line needs: the gateway knows the secret's hash. */
const CREDENTIALS = ['PORTCULLIS_CLIENT_ID', 'PORTCULLIS_CLIENT_SECRET']

/** Nobody else is on this machine, and a newcomer wants to look. */
const LOCAL_METRICS_ACCESS = 'public'

/** Stands for the service binding, which only a Worker has. */
const DEMO_ORIGIN = { fetch() {} }

export type GatewayVars = DevVars & {
  readonly UPSTASH_REDIS_REST_URL: string
  readonly CLIENTS: string
  readonly METRICS_ACCESS: string
}

/**
 * Merges what is given with what `.dev.vars` holds; the former wins, and the operator's client is
 * added to `CLIENTS` either way. Throws `Misconfigured` with
 * every mistake named.
 */
export function gatewayVars(
  settings: Settings,
  devVars: DevVars,
  publicUrl: string,
  redisRest: { readonly url: string; readonly token: string },
): GatewayVars {
  const vars: GatewayVars = {
    METRICS_ACCESS: LOCAL_METRICS_ACCESS,
    ...devVars,
    ...settings.gatewayVars,
    PUBLIC_URL: publicUrl,
    UPSTASH_REDIS_REST_URL: redisRest.url,
    UPSTASH_REDIS_REST_TOKEN: redisRest.token,
    CLIENTS: clientsWithOperator(devVars, settings.gatewayVars.CLIENTS ?? devVars.CLIENTS),
  }
  configOf(vars)
  return vars
}

/** What the gateway makes of its variables. Throws `Misconfigured` with every mistake named. */
export const configOf = (vars: GatewayVars): Config =>
  parseConfig(vars.ORIGIN_URL === undefined ? { ...vars, ORIGIN: DEMO_ORIGIN } : vars)

/**
 * The text of an environment file for `wrangler dev --env-file`, which expands `$NAME`. The
 * credentials of the command line are left out.
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

/** The same JSON, without new lines and quotes that an environment file would trip over. */
function oneLine(json: string): string {
  return JSON.stringify(JSON.parse(json)).replaceAll("'", '\\u0027')
}

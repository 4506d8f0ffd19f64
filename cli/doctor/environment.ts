/** Checks the variables of the gateway with its own schema. */
import { Misconfigured } from '../../src/errors.ts'
import { environmentSchema, parseConfig, type WholeConfig } from '../../src/features/environment.ts'
import { textOf } from '../../src/problems/mistake.ts'
import { BOTH_HAVE_ISSUERS, failing, originChecksFor } from '../../src/validators/environment.ts'
import type { Values } from '../deploy/values.ts'
import { type Finding, mistake, ok, warning } from './finding.ts'

const CHECK = 'environment'
const DAY_MS = 86_400_000
/** As the log of the gateway warns. */
const SOON_DAYS = 7

/** Corrections of mistakes, by variable. */
const REMEDIES: Readonly<Record<string, string>> = {
  UPSTASH_REDIS_REST_URL: 'Copy the REST URL of the database from the console of Upstash.',
  UPSTASH_REDIS_REST_TOKEN:
    'Copy the REST token of the database, not the read-only one, from the console of Upstash.',
  PUBLIC_URL:
    'Set it to the URL at which clients find the gateway, such as https://api.example.com.',
  ORIGIN_URL: 'Set it to the URL of your API, or bind a Worker as ORIGIN in wrangler.toml.',
  ISSUERS: 'Correct the entry of the issuer; docs/issuers.md lists its fields.',
  SIGNING_KEYS: 'Create the keys as docs/tokens.md describes, and do not edit them by hand.',
  CLIENTS: 'Create each entry with `portcullis clients hash-secret`.',
  REDIS_URL: 'Set it to the URL of your Redis, such as redis://127.0.0.1:6379.',
  AUDIT_DATABASE: 'Set it as docs/audit.md describes, such as sqlite:/var/lib/portcullis/audit.db.',
  PROXY_TARGET_HEADERS:
    'Name only headers that these proxies overwrite, such as x-forwarded-proto.',
  PROXY_COUNTRY_HEADER: 'Name the header that these proxies overwrite, such as x-geo-country.',
  PROXY_CITY_HEADER: 'Name the header that these proxies overwrite, such as x-geo-city.',
  TRUSTED_PROXIES: 'Set it to the networks of the proxies, such as 10.0.0.0/8.',
}
const BINDING = /, or bind a (service|Worker) as ORIGIN( in wrangler\.toml)?/
const OTHER_REMEDY = 'Correct the variable; docs/environment.md describes it.'

export interface CheckedEnvironment {
  readonly findings: readonly Finding[]
  /** Undefined if there are mistakes. */
  readonly config: WholeConfig | undefined
}

/**
 * Checks all variables. `bindsOrigin`: the origin is a Worker of `wrangler.toml`. Default schema: of Workers. `ofPolicy` is
 * `ISSUERS` of a policy with issuers of its own.
 */
export function checkEnvironment(
  values: Values,
  bindsOrigin: boolean,
  nowMs: number,
  schema = environmentSchema,
  ofPolicy?: string,
): CheckedEnvironment {
  const binding = bindsOrigin ? { ORIGIN: {} } : {}
  try {
    const config = parseConfig(
      { ...values, ISSUERS: values.ISSUERS ?? ofPolicy, ...binding },
      schema,
      [
        ...originChecksFor(Object.keys(values)),
        ...(ofPolicy !== undefined && values.ISSUERS !== undefined
          ? [failing('ISSUERS', BOTH_HAVE_ISSUERS)]
          : []),
      ],
    )
    const count = Object.keys(values).filter((name) => name in schema.shape).length
    const findings = [ok(CHECK, `${count} variables, all valid`), ...cautions(config, nowMs)]
    return { findings, config }
  } catch (error) {
    if (!(error instanceof Misconfigured)) throw error
    // Only a Worker can bind another one.
    const here = (text: string) => (schema === environmentSchema ? text : text.replace(BINDING, ''))
    const findings = error.found.map((one) =>
      mistake(CHECK, here(textOf(one)), here(REMEDIES[String(one.path[0])] ?? OTHER_REMEDY)),
    )
    return { findings, config: undefined }
  }
}

/** Values that are valid, but probably not meant. */
function cautions(
  { publicUrl, signingKeys, issuers, issuerClients }: WholeConfig,
  nowMs: number,
): Finding[] {
  const findings: Finding[] = []
  if (new URL(publicUrl).protocol === 'http:' && !isLocal(publicUrl)) {
    const remedy = 'Serve the gateway over https, and set PUBLIC_URL to that URL.'
    const seen = 'PUBLIC_URL: is http, so tokens travel in clear text'
    findings.push(warning(CHECK, seen, remedy))
  }
  if (issuers.length === 0) {
    const remedy = 'Add your identity provider to ISSUERS, or set SIGNING_KEYS.'
    const seen = 'ISSUERS: there is no issuer, so the gateway accepts no token'
    findings.push(warning(CHECK, seen, remedy))
  }
  if (signingKeys !== undefined) {
    const remedy = 'Rotate the signing keys and deploy them; docs/tokens.md describes it.'
    const { keys } = signingKeys
    findings.push(
      keyFinding({ check: 'signing keys', variable: 'SIGNING_KEYS', keys, nowMs, remedy }),
    )
  }
  for (const client of issuerClients)
    if ('key' in client) {
      const check = `key of the client at ${client.issuer}`
      const remedy = 'Register a new key at the issuer, and replace the key in ISSUER_CLIENTS.'
      const keys = [client.key]
      findings.push(keyFinding({ check, variable: 'ISSUER_CLIENTS', keys, nowMs, remedy }))
    }
  return findings
}

export function isLocal(url: string): boolean {
  return /^(localhost|127(\.\d+){3}|\[::1\])$/.test(new URL(url).hostname)
}

interface Keys {
  readonly check: string
  readonly variable: string
  readonly keys: NonNullable<WholeConfig['signingKeys']>['keys']
  readonly remedy: string
  readonly nowMs: number
}

function keyFinding({ check, variable, keys, remedy, nowMs }: Keys): Finding {
  const active = keys.filter(
    ({ nbf = 0, exp = Number.POSITIVE_INFINITY }) => nbf * 1_000 <= nowMs && nowMs < exp * 1_000,
  )
  if (active.length === 0) return mistake(check, `no key of ${variable} signs now`, remedy)
  const endMs = Math.max(...keys.map(({ exp = Number.POSITIVE_INFINITY }) => exp * 1_000))
  const days = Math.floor((endMs - nowMs) / DAY_MS)
  return days < SOON_DAYS
    ? warning(check, `the last key expires in ${days} days`, remedy)
    : ok(check, `${keys.length} in ${variable}, ${active.length} of them sign now`)
}

/** Returns a variable that is valid by itself, although others may not be. */
export function validVariable<Name extends 'UPSTASH_REDIS_REST_URL' | 'ORIGIN_URL'>(
  values: Values,
  name: Name,
): string | undefined {
  const value = values[name]
  return environmentSchema.shape[name].safeParse(value).success ? value : undefined
}

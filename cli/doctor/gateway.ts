/** Checks a running gateway: its readiness, its operators' API, its queue and its audit trail. */

import { remedyFor } from '../../dev/start/unreachable.ts'
import { readConnection } from '../connection.ts'
import { Failure } from '../failure.ts'
import { createGateway, type Gateway } from '../gateway.ts'
import { jsonIn } from '../json.ts'
import { type Finding, mistake, notChecked, ok, warning } from './finding.ts'
import { request } from './request.ts'

const GATEWAY = 'gateway'
const OPERATOR = 'Set PORTCULLIS_CLIENT_ID and PORTCULLIS_CLIENT_SECRET of an operator.'

/** What to do on each platform. */
export interface Platform {
  /** By name of the readiness check. */
  readonly readiness: Readonly<Record<string, string>>
  readonly log: string
  readonly noEvents: string
  readonly trail: string
  /** Without a running gateway. */
  readonly unseen: Finding
}

const REDIS = 'Check the findings about redis, and the variables that are deployed.'
const KEY_SETS = 'Check the findings about key sets; the log of the gateway names the issuer.'

export const CLOUDFLARE: Platform = {
  readiness: {
    redis: REDIS,
    keySets: KEY_SETS,
    queue: 'Check that the queue exists; events wait in Redis until it accepts them.',
  },
  log: 'Read the log of the gateway with `npx wrangler tail`.',
  noEvents:
    'Send a request and run the command again; if this remains, check the audit Worker and its queue.',
  trail:
    'Check that AUDIT_DB is bound, that its migrations are applied, and that the operator may read the trail.',
  unseen: notChecked(
    'queue and database',
    'without --url, nothing is known about the queue and about D1',
    'Run the command with --url and the URL of the running gateway.',
  ),
}

export const NODE: Platform = {
  readiness: {
    redis: REDIS,
    keySets: KEY_SETS,
    queue: 'Check Redis; events wait in the spool or in memory until it accepts them.',
    server: 'The gateway is stopping; start it again.',
  },
  log: 'Read the log of the gateway: it is on stdout.',
  noEvents: 'Send a request and run the command again; if this remains, check AUDIT_DATABASE.',
  trail: 'Check AUDIT_DATABASE, and that the operator may read the trail.',
  unseen: notChecked(
    GATEWAY,
    'without --url, nothing is known about a running gateway',
    'Run the command with --url and the URL of the running gateway.',
  ),
}

/** Checks the gateway at `url`, or reports what cannot be checked without one. */
export async function checkGateway(
  url: string | undefined,
  env: NodeJS.ProcessEnv,
  folder: string,
  platform: Platform,
): Promise<readonly Finding[]> {
  if (url === undefined) return [platform.unseen]
  const readiness = await readinessFindings(url, platform)
  const isDown = readiness.some(({ check, level }) => check === GATEWAY && level === 'error')
  return isDown
    ? readiness
    : [...readiness, ...(await operatorFindings(url, env, folder, platform))]
}

interface ReadinessBody {
  readonly code?: unknown
  readonly checks?: Readonly<Record<string, unknown>>
  readonly breakers?: Readonly<Record<string, unknown>>
}

async function readinessFindings(url: string, platform: Platform): Promise<readonly Finding[]> {
  const check = GATEWAY
  const path = `${url}/-/readyz`
  const answer = await request(path)
  if (typeof answer === 'string') {
    const remedy = remedyFor(answer, 'Start or deploy the gateway, or correct --url.')
    return [mistake(check, `${path} ${answer}`, remedy)]
  }
  const { code, checks, breakers = {} } = (jsonIn(answer.text) ?? {}) as ReadinessBody
  if (code === 'misconfigured')
    return [mistake(check, 'is deployed, but misconfigured', platform.log)]
  if (typeof checks !== 'object') {
    const seen = `${path} responds with status ${answer.status}, but not in the form of a gateway`
    return [mistake(check, seen, 'Set --url to the gateway itself, without a path.')]
  }
  const failed = Object.keys(checks).filter((name) => checks[name] !== 'ok')
  const open = Object.keys(breakers).filter((name) => breakers[name] !== 'closed')
  return [
    ...failed.map((name) =>
      mistake(
        `readiness of ${name}`,
        'the gateway reports that it fails',
        platform.readiness[name] ?? platform.log,
      ),
    ),
    ...open.map((name) =>
      warning(
        `circuit breaker of ${name}`,
        `is ${String(breakers[name])} in one isolate`,
        'Check the dependency; the breaker closes after its first success.',
      ),
    ),
    ...(failed.length === 0 ? [ok(check, `ready: ${Object.keys(checks).join(', ')}`)] : []),
  ]
}

async function operatorFindings(
  url: string,
  env: NodeJS.ProcessEnv,
  folder: string,
  platform: Platform,
): Promise<readonly Finding[]> {
  let gateway: Gateway
  try {
    gateway = createGateway(readConnection({ url }, env, folder))
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return [notChecked("operators' API and database", error.message, OPERATOR)]
  }
  const operators = await apiFinding(gateway)
  return operators.level === 'ok' ? [operators, await trailFinding(gateway, platform)] : [operators]
}

async function apiFinding(gateway: Gateway): Promise<Finding> {
  const check = "operators' API"
  try {
    await gateway.get('/keys')
    return ok(check, 'accepts the client of PORTCULLIS_CLIENT_ID')
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return mistake(check, `${error.code}: ${error.message}`, OPERATOR)
  }
}

interface TrailPage {
  readonly events: readonly { readonly time: string }[]
}

async function trailFinding(gateway: Gateway, platform: Platform): Promise<Finding> {
  const check = 'queue and database'
  try {
    const { events } = await gateway.get<TrailPage>('/audit', { limit: 1 })
    const [newest] = events
    return newest === undefined
      ? warning(check, 'the audit trail is readable, but has no events', platform.noEvents)
      : ok(check, `the audit trail is readable; its newest event is of ${newest.time}`)
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return mistake(check, `${error.code}: ${error.message}`, platform.trail)
  }
}

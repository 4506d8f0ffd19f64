/** Checks a running gateway: its readiness, its operators' API, its queue and its audit trail. */
import { readConnection } from '../connection.ts'
import { Failure } from '../failure.ts'
import { createGateway, type Gateway } from '../gateway.ts'
import { type Finding, mistake, notChecked, ok, warning } from './finding.ts'
import { jsonIn, request } from './request.ts'

const GATEWAY = 'gateway'
const READINESS_REMEDIES: Readonly<Record<string, string>> = {
  redis: 'Check the findings about redis, and the variables that are deployed.',
  keySets: 'Check the findings about key sets; the log of the gateway names the issuer.',
  queue: 'Check that the queue exists; events wait in Redis until it accepts them.',
}
const LOG = 'Read the log of the gateway with `npx wrangler tail`.'
const OPERATOR = 'Set PORTCULLIS_CLIENT_ID and PORTCULLIS_CLIENT_SECRET of an operator.'
const LOCAL_STATE = notChecked(
  'queue and database',
  'without --url, nothing is known about the queue and about D1',
  'Run the command with --url and the URL of the running gateway.',
)

/** Checks the gateway at `url`, or reports what cannot be checked without one. */
export async function checkGateway(
  url: string | undefined,
  env: NodeJS.ProcessEnv,
  folder: string,
): Promise<readonly Finding[]> {
  if (url === undefined) return [LOCAL_STATE]
  const readiness = await readinessFindings(url)
  const isDown = readiness.some(({ check, level }) => check === GATEWAY && level === 'error')
  return isDown ? readiness : [...readiness, ...(await operatorFindings(url, env, folder))]
}

interface ReadinessBody {
  readonly code?: unknown
  readonly checks?: Readonly<Record<string, unknown>>
  readonly breakers?: Readonly<Record<string, unknown>>
}

async function readinessFindings(url: string): Promise<readonly Finding[]> {
  const check = GATEWAY
  const path = `${url}/-/readyz`
  const answer = await request(path)
  if (typeof answer === 'string') {
    return [mistake(check, `${path} ${answer}`, 'Start or deploy the gateway, or correct --url.')]
  }
  const { code, checks, breakers = {} } = (jsonIn(answer.text) ?? {}) as ReadinessBody
  if (code === 'misconfigured') return [mistake(check, 'is deployed, but misconfigured', LOG)]
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
        READINESS_REMEDIES[name] ?? LOG,
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
): Promise<readonly Finding[]> {
  let gateway: Gateway
  try {
    gateway = createGateway(readConnection({ url }, env, folder))
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return [notChecked("operators' API and database", error.message, OPERATOR)]
  }
  const operators = await apiFinding(gateway)
  return operators.level === 'ok' ? [operators, await trailFinding(gateway)] : [operators]
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

async function trailFinding(gateway: Gateway): Promise<Finding> {
  const check = 'queue and database'
  try {
    const { events } = await gateway.get<TrailPage>('/audit', { limit: 1 })
    const [newest] = events
    return newest === undefined
      ? warning(
          check,
          'the audit trail is readable, but has no events',
          'Send a request and run the command again; if this remains, check the audit Worker and its queue.',
        )
      : ok(check, `the audit trail is readable; its newest event is of ${newest.time}`)
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    const remedy =
      'Check that AUDIT_DB is bound, that its migrations are applied, and that the operator may read the trail.'
    return mistake(check, `${error.code}: ${error.message}`, remedy)
  }
}

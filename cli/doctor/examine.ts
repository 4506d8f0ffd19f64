/** Runs all checks of `portcullis doctor`, and prints the findings. */

import { isNodeFolder, isWorkerFolder } from '../../dev/start/main-config.ts'
import { environmentSchema } from '../../src/features/environment.ts'
import { isOriginVariable } from '../../src/validators/environment.ts'
import { readAppValues } from '../deploy/app.ts'
import { isApp, namesIn } from '../deploy/project.ts'
import {
  allValues,
  configuredVariables,
  GATEWAY_VARIABLES,
  readValues,
  type Values,
} from '../deploy/values.ts'
import { REFUSED, usage } from '../failure.ts'
import { jsonIn } from '../json.ts'
import { createOutput } from '../output.ts'
import { issuersOfProject } from '../policy/issuers.ts'
import { policyFile } from '../policy/load.ts'
import { projectAround, requireProject } from '../project.ts'
import { counted, table } from '../text.ts'
import { checkEnvironment, validVariable } from './environment.ts'
import { byUrgency, type Finding, mistake, notChecked, ok, warning } from './finding.ts'
import { CLOUDFLARE, checkGateway, NODE } from './gateway.ts'
import { allNodeValues, checkNode, NODE_VARIABLES, nodeValues } from './node.ts'
import { checkFeatures } from './policy.ts'
import { checkProject } from './project.ts'
import { createRedactor } from './redact.ts'
import { checkRedis } from './redis.ts'
import { request } from './request.ts'
import { checkSignIn } from './sign-in.ts'
import { checkKeySets, checkOrigin } from './upstreams.ts'

export interface DoctorOptions {
  readonly json?: boolean
  readonly env: string
  /** The file of the policy. Default: that of the project. */
  readonly config?: string
  readonly values?: string
  readonly url?: string
  /** The gateway runs on Node. Default: true for a project with a policy and without a Worker. */
  readonly node?: boolean
}

const COLUMNS = ['level', 'check', 'finding']
const INVALID = 'Correct the variable first.'
const NO_VARIABLES = notChecked(
  'environment',
  'no variable of the gateway is set here, so Redis, key sets and origin were not called',
  'Name the file with the variables of the gateway with --values.',
)

/**
 * Runs all checks, prints the findings, and sets the exit code to 1 if there is an error. Throws a
 * usage failure for options that are not valid.
 */
export async function examine(options: DoctorOptions): Promise<void> {
  const url = options.url === undefined ? undefined : originOf(options.url)
  const folder = process.cwd()
  const root = options.config === undefined ? projectAround(folder) : requireProject(folder)
  const named =
    options.config === undefined || root === undefined
      ? undefined
      : policyFile(options.config, '--config', folder, root)
  // Without a Worker, a policy at another place is one for Node as well.
  const isNode =
    isNodeFolder(root ?? folder) || (named !== undefined && !isWorkerFolder(root ?? folder))
  const now = new Date()
  if (named === undefined && !options.node && isApp(root ?? folder)) {
    const place = { folder: root ?? folder, environment: options.env }
    const values = readAppValues(place, options.values, process.env)
    const { findings } = checkProject(root ?? folder, options.env, now.toISOString().slice(0, 10))
    const found = await checkApp(url, values)
    report([...findings, ...found], { ...process.env, ...values } as Values, options.json ?? false)
    return
  }
  const issuers = await issuersOfProject(root, named)
  if (options.node || isNode) {
    const values = nodeValues(options.values, process.env)
    // A gateway that runs has its variables elsewhere.
    const isRemote = url !== undefined && Object.keys(values).length === 0
    const parts = await Promise.all([
      isRemote ? [NO_VARIABLES] : checkNode(values, now.getTime(), issuers),
      isRemote
        ? []
        : checkFeatures(
            root,
            values,
            allNodeValues(options.values, process.env),
            NODE_VARIABLES,
            named,
          ),
      checkGateway(url, process.env, folder, NODE),
    ])
    report(parts.flat(), { ...process.env, ...values } as Values, options.json ?? false)
    return
  }
  const project = checkProject(root, options.env, now.toISOString().slice(0, 10))
  const { environment } = project
  const place = { folder: root ?? folder, environment: options.env }
  const given = readValues(place, options.values, process.env)
  const configured = environment && configuredVariables(environment)
  const values = { ...(url && { PUBLIC_URL: url }), ...configured, ...given }
  const bindings = namesIn(environment?.workers.at(-1)?.table.services, 'binding')
  // A gateway that runs has its variables elsewhere, so none are expected here.
  const isRemote = url !== undefined && !GATEWAY_VARIABLES.some((name) => name in given)
  const parts = await Promise.all([
    isRemote ? [NO_VARIABLES] : checkFromHere(values, bindings, now.getTime(), issuers),
    project.findings,
    isRemote
      ? []
      : checkFeatures(
          root,
          values,
          { ...configured, ...allValues(place, options.values, process.env) },
          environmentSchema.shape,
          named,
        ),
    checkGateway(url, process.env, folder, CLOUDFLARE),
  ])
  report(parts.flat(), { ...process.env, ...values } as Values, options.json ?? false)
}

/** Checks the variables, and with them what the gateway depends on. */
async function checkFromHere(
  values: Values,
  bindings: readonly string[],
  nowMs: number,
  issuers: string | undefined,
): Promise<readonly Finding[]> {
  const { findings, config } = checkEnvironment(
    values,
    bindings.includes('ORIGIN'),
    nowMs,
    environmentSchema,
    issuers,
  )
  const others = await Promise.all([
    redisFindings(values, config?.redis.timeoutMs),
    config === undefined ? [unread('key sets', 'the environment')] : checkKeySets(config),
    config === undefined ? [] : checkSignIn(config),
    originFindings(values, bindings),
  ])
  return [...findings, ...others.flat()]
}

function originOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.href !== `${url.origin}/`) {
    throw usage(
      '--url must be an http or https URL without a path, such as https://api.example.com',
    )
  }
  return url.origin
}

const unread = (check: string, what: string): Finding =>
  notChecked(check, `${what} is missing or not valid`, INVALID)

async function redisFindings(values: Values, timeoutMs?: number): Promise<readonly Finding[]> {
  const url = validVariable(values, 'UPSTASH_REDIS_REST_URL')
  const token = values.UPSTASH_REDIS_REST_TOKEN
  if (url === undefined) return [unread('redis', 'UPSTASH_REDIS_REST_URL')]
  if (token === undefined) return [unread('redis', 'UPSTASH_REDIS_REST_TOKEN')]
  return checkRedis({ url, token, prefix: values.REDIS_PREFIX ?? 'pc:', timeoutMs })
}

async function originFindings(
  values: Values,
  bindings: readonly string[],
): Promise<readonly Finding[]> {
  const named = Object.entries(values).filter(([name]) => isOriginVariable(name))
  const findings = await Promise.all(
    named.map(([name, url]) =>
      /^https?:/i.test(url) && URL.canParse(url) ? checkOrigin(url, name) : unread('origin', name),
    ),
  )
  const url = validVariable(values, 'ORIGIN_URL')
  if (url !== undefined || (values.ORIGIN_URL === undefined && bindings.includes('ORIGIN')))
    return [await checkOrigin(url), ...findings]
  const isNeeded = values.ORIGIN_URL !== undefined || named.length === 0
  return isNeeded ? [unread('origin', 'ORIGIN_URL'), ...findings] : findings
}

function report(found: readonly Finding[], values: Values, json: boolean): void {
  const redact = createRedactor(values)
  const findings = byUrgency(found).map((finding) => ({
    level: finding.level,
    check: redact(finding.check),
    seen: redact(finding.seen),
    remedy: finding.remedy,
  }))
  const rows = findings.map(({ level, check, seen, remedy }) => {
    const finding = remedy === undefined ? seen : `${seen.replace(/\.$/, '')}. ${remedy}`
    return { level, check, finding }
  })
  const output = createOutput(json)
  const count = (level: Finding['level']) => findings.filter((one) => one.level === level).length
  const [errors, warnings] = [count('error'), count('warning')]
  output.result({ ok: errors === 0, findings }, table(rows, COLUMNS, output.style))
  output.remark(`${counted(errors, 'error')}, ${counted(warnings, 'warning')}.`)
  if (errors > 0) process.exitCode = REFUSED
}

const APP = 'app'

const OPTIONS = notChecked(
  'options',
  'the options of an app are in its code: issuers, roles and limits',
  'Its first request names every mistake in its log; `npx portcullis idp doctor` examines tokens.',
)

const LOG = 'Read the log of the app with `npx wrangler tail`: it names every mistake.'

/**
 * Checks an app that guards its own routes. Its options are in its code, so nothing is known about its issuers here.
 * Returns the findings about Redis, if its variables have values here, and about the running app at `url`.
 */
async function checkApp(url: string | undefined, values: Values): Promise<Finding[]> {
  const [redis, running] = await Promise.all([
    values.UPSTASH_REDIS_REST_URL === undefined ? [] : redisFindings(values),
    url === undefined ? [] : answerFindings(url),
  ])
  return [...redis, ...running, OPTIONS]
}

/** A request without a token: the guard answers for itself. */
async function answerFindings(url: string): Promise<readonly Finding[]> {
  const answer = await request(`${url}/`)
  if (typeof answer === 'string')
    return [mistake(APP, `${url} ${answer}`, 'Check the address, and deploy the app.')]
  const { status, text } = answer
  const { code } = (jsonIn(text) ?? {}) as { readonly code?: unknown }
  const seen = `${url}/ without a token: status ${status}${typeof code === 'string' ? `, ${code}` : ''}`
  if (status >= 500) return [mistake(APP, seen, LOG)]
  if (status === 401) return [ok(APP, seen)]
  return [
    warning(APP, seen, 'Check that this path may be open: the guard did not refuse the request.'),
  ]
}

/** `portcullis deploy`: deploys a gateway or an app with everything that it needs, and takes a version back. */

import type { Command } from '@commander-js/extra-typings'
import { textOf } from '../../src/problems/mistake.ts'
import { seconds } from '../arguments.ts'
import { type OptionsOf, offlineCommand } from '../command.ts'
import { isConfirmed } from '../confirm.ts'
import { readAppValues } from '../deploy/app.ts'
import { carryOut } from '../deploy/carry-out.ts'
import { type Cloudflare, createCloudflare } from '../deploy/cloudflare.ts'
import { bundleSizes } from '../deploy/dry-run.ts'
import { type Environment, environmentOf, isOfApp, PRODUCTION } from '../deploy/environment.ts'
import { makePlan, type Plan, stepsOf } from '../deploy/plan.ts'
import { readProject } from '../deploy/project.ts'
import { APP, awaitReadiness } from '../deploy/readiness.ts'
import { type Scratch, withScratch } from '../deploy/secrets.ts'
import {
  configuredVariables,
  incomplete,
  missingCredentials,
  mistakesIn,
  readValues,
  type Values,
} from '../deploy/values.ts'
import { createWrangler, type RunWrangler } from '../deploy/wrangler.ts'
import { type Failure, refused, undecided, usage } from '../failure.ts'
import { createOutput, type Output } from '../output.ts'
import { deployerOf } from '../policy/deployed-by.ts'
import { issuersOfProject } from '../policy/issuers.ts'
import { projectAround } from '../project.ts'
import { record, table } from '../text.ts'

const DEFAULT_WAIT_SECONDS = 60
const BYTES_PER_KIB = 1024
const COLUMNS = ['action', 'what', 'name', 'detail']

const CREDENTIALS_HELP = `
Environment:
  CLOUDFLARE_API_TOKEN      an API token of Cloudflare
  CLOUDFLARE_ACCOUNT_ID     the account
and the variables of the gateway, such as UPSTASH_REDIS_REST_URL: docs/deploy.md

In the folder of an app that guards its own routes (portcullis/hono, portcullis/fetch or portcullis/express in the main module),
every value of the file becomes a secret of the app.`

const deployCommand = (program: Command) =>
  targeted(
    offlineCommand(program, {
      name: 'deploy',
      does: 'deploy the gateway or the app of this folder, and create what it needs in Cloudflare',
      examples: [
        'portcullis deploy --plan',
        'portcullis deploy --env staging --create-operator',
        'portcullis deploy --yes --json',
      ],
    }),
  )
    .option('--plan', 'show what would be done, and change nothing')
    .option('--dry-run', 'bundle the Workers and print their sizes; needs no account')
    .option(
      '--create-operator',
      'create the first operator and print its secret once; the policy needs operators() and authorizationServer()',
    )
    .option('--wait <time>', 'longest time to wait until it is ready (default: 60s)', seconds)
    .option('-y, --yes', 'do not ask for confirmation')
    .addHelpText('after', CREDENTIALS_HELP)
    .enablePositionalOptions()

const rollbackCommand = (deploy: Command) =>
  targeted(
    offlineCommand(deploy, {
      name: 'rollback',
      does: 'let an earlier version serve again; data and migrations do not change',
      examples: ['portcullis deploy rollback', 'portcullis deploy rollback --env staging --yes'],
    }),
  )
    .option('--to <version>', 'id of the version (default: the previous version)')
    .option('--worker <name>', 'another Worker of the project (default: the gateway, or the app)')
    .option('-y, --yes', 'do not ask for confirmation')

const targeted = (command: ReturnType<typeof offlineCommand>) =>
  command
    .option('--env <name>', 'environment, such as staging', PRODUCTION)
    .option('--values <file>', 'file with values (default: .portcullis/<env>.env)')

export function addDeployCommands(program: Command): void {
  const deploy = deployCommand(program).action(deployProject)
  rollbackCommand(deploy).action(rollBack)
}

/** The inputs of both commands. */
interface Target {
  readonly folder: string
  readonly environment: Environment
  readonly values: Values
  readonly output: Output
}

function targetOf({ env, values: named, json }: OptionsOf<typeof targeted>): Target {
  const folder = projectAround(process.cwd()) ?? process.cwd()
  const environment = environmentOf(readProject(folder), env)
  const read = isOfApp(environment) ? readAppValues : readValues
  const values = read({ folder, environment: env }, named, process.env)
  return { folder, environment, values, output: createOutput(json ?? false) }
}

function cloudflareOf({ CLOUDFLARE_API_TOKEN, CLOUDFLARE_ACCOUNT_ID }: Values): Cloudflare {
  return createCloudflare({
    token: CLOUDFLARE_API_TOKEN ?? '',
    accountId: CLOUDFLARE_ACCOUNT_ID ?? '',
    baseUrl: process.env.CLOUDFLARE_API_BASE_URL || undefined,
  })
}

function wranglerFor({ folder, values }: Target, scratch: Scratch): RunWrangler {
  const credentials = ['CLOUDFLARE_API_TOKEN', 'CLOUDFLARE_ACCOUNT_ID']
  const env = Object.entries(values).filter(([name]) => credentials.includes(name))
  const secrets = Object.entries(values)
    .filter(([name]) => name !== 'CLOUDFLARE_ACCOUNT_ID')
    .map(([, value]) => value)
  return createWrangler({
    cwd: folder,
    env: Object.fromEntries(env),
    scratch: scratch.path,
    secrets,
  })
}

async function deployProject(options: OptionsOf<typeof deployCommand>): Promise<void> {
  const target = targetOf(options)
  const { environment, values, folder, output } = target
  const ofApp = isOfApp(environment)
  if (ofApp && options.createOperator)
    throw usage('--create-operator: an app has no operators; a gateway has')
  if (options.dryRun) return withScratch((scratch) => dryRun(target, scratch))
  const issuers = await issuersOfProject(folder)
  const missing = missingCredentials(values)
  if (missing.length > 0) {
    const assumed = { PUBLIC_URL: 'https://gateway.invalid', ...values }
    const unset = ofApp ? [] : mistakesIn(environment, assumed, [], issuers)
    throw incomplete(folder, environment.name, [...missing, ...unset])
  }
  const cloudflare = cloudflareOf(values)
  const createOperator = options.createOperator ?? false
  const plan = await makePlan({ environment, values, cloudflare, createOperator, issuers })
  const steps = stepsOf(plan)
  const shown = { environment: environment.name, url: plan.publicUrl, steps }
  if (options.plan) {
    output.result(
      { ...shown, mistakes: plan.mistakes.map(textOf) },
      table(steps, COLUMNS, output.style),
    )
    if (plan.mistakes.length > 0) throw incomplete(folder, environment.name, plan.mistakes)
    output.remark(
      `The ${ofApp ? 'app' : 'gateway'} will be at ${plan.publicUrl}. Nothing was changed.`,
    )
    return
  }
  if (plan.mistakes.length > 0) throw incomplete(folder, environment.name, plan.mistakes)
  for (const line of table(steps, COLUMNS).split('\n')) output.remark(line)
  await confirm(`Deploy to ${environment.name}?`, options)
  const given = { ...configuredVariables(environment), ...values }
  const deployedBy = ofApp ? undefined : await deployerOf(folder, given)
  const { versions, operator, failure } = await withScratch((scratch) => {
    const wrangler = wranglerFor(target, scratch)
    const report = (line: string) => output.remark(line)
    return carryOut(plan, {
      ...{ environment, values, cloudflare, wrangler, scratch, report, deployedBy },
    })
  })
  const client = operator && { clientId: operator.clientId, clientSecret: operator.clientSecret }
  if (failure !== undefined) {
    if (client !== undefined) {
      output.result(client, record(client, output.style))
      output.remark('Keep the secret: Cloudflare may have stored this client before the failure.')
    }
    throw failure
  }
  const wait = options.wait ?? DEFAULT_WAIT_SECONDS
  const readiness = await awaitReadiness(plan.publicUrl, wait, ofApp ? APP : undefined)
  const rollback = `npx portcullis deploy rollback${environmentOption(environment.name)}`
  const result = { url: plan.publicUrl, ready: readiness.ready, rollback, ...client }
  output.result({ ...shown, ...result, versions }, record(result, output.style))
  if (client !== undefined) output.remark('The secret is shown once and not stored.')
  if (options.createOperator && client === undefined) {
    output.remark(
      'CLIENTS is set already; no client was created. To replace it, set CLIENTS to the output of `npx portcullis clients hash-secret`.',
    )
  }
  if (!readiness.ready) throw notReady(plan, readiness.last, rollback, ofApp ? '/' : '/-/readyz')
}

/** Deploys an earlier version of one Worker again. */
async function rollBack(options: OptionsOf<typeof rollbackCommand>): Promise<void> {
  const target = targetOf(options)
  const { environment, values, folder, output } = target
  const missing = missingCredentials(values)
  if (missing.length > 0) throw incomplete(folder, environment.name, missing)
  const worker = workerNamed(environment, options.worker)
  const [present, ...earlier] = await cloudflareOf(values).deployments(worker)
  const version =
    options.to ?? earlier.find((deployment) => deployment.version !== present?.version)?.version
  if (present === undefined || version === undefined) {
    const detail = `${worker} has no earlier version to return to`
    throw refused('no_earlier_version', detail)
  }
  output.remark(`${worker} serves version ${present.version}, from ${present.createdAt}.`)
  await confirm(`Return to version ${version}?`, options)
  await withScratch(async (scratch) => {
    const message = 'portcullis deploy rollback'
    const wrangler = wranglerFor(target, scratch)
    await wrangler(['rollback', version, '--name', worker, '-y', '-m', message])
  })
  output.result(
    { environment: environment.name, worker, version, previous: present.version },
    `${worker} serves version ${version} again.`,
  )
  output.remark('Resources, data and migrations are unchanged.')
}

/** Returns the name of the gateway, or that of another Worker as its file or the account names it. */
function workerNamed(
  { workers, name: environment }: Environment,
  wanted: string | undefined,
): string {
  const names = workers.map(({ name }) => name)
  if (wanted === undefined) return names.at(-1) ?? ''
  const found = names.find((name) => name === wanted || name === `${wanted}-${environment}`)
  if (found === undefined) throw usage(`--worker: the project has ${names.join(', ')}`)
  return found
}

async function dryRun(target: Target, scratch: Scratch): Promise<void> {
  const { environment, output } = target
  const sizes = await bundleSizes(environment, wranglerFor(target, scratch), scratch)
  const lines = sizes.map(
    ({ worker, bytes, gzipBytes }) => `${worker}: ${kib(bytes)} KiB, gzip ${kib(gzipBytes)} KiB`,
  )
  output.result({ sizes }, [...lines, 'Nothing was deployed.'].join('\n'))
}

const kib = (bytes: number): string => (bytes / BYTES_PER_KIB).toFixed(1)

const environmentOption = (name: string): string => (name === PRODUCTION ? '' : ` --env ${name}`)

/** Throws a usage failure unless a person at a terminal agrees, or `--yes` was given. */
async function confirm(
  question: string,
  { yes, json }: { readonly yes?: boolean; readonly json?: boolean },
): Promise<void> {
  if (yes) return
  if (json || !process.stdin.isTTY) throw usage('without a terminal, this command needs --yes')
  if (!(await isConfirmed(question))) throw usage('not confirmed; nothing was changed')
}

function notReady({ publicUrl }: Plan, last: string, rollback: string, path: string): Failure {
  return undecided(
    'not_ready',
    `deployed, but ${publicUrl}${path} was not ready in time (${last}). A new domain may need some minutes. To return to the previous version: ${rollback}`,
  )
}

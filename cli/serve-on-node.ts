/** Serves the gateway of a project for `portcullis serve`. Loaded only by that command. */
import cluster from 'node:cluster'
import { createLogForPeople } from '../dev/start/log-for-people.ts'
import type {
  Policy,
  PolicyChange,
  Server,
  ServeOptions as ServerOptions,
} from '../src/runtimes/node/index.ts'
import { mistakeOfRuntime } from '../src/runtimes/node/other-runtime.ts'
import { valuesIn } from './deploy/values.ts'
import { Failure, findingsOf, mistakesOf, REFUSED, refused, USAGE, usage } from './failure.ts'
import { boundHeap } from './heap-flags.ts'
import { listenFailure } from './listen-failure.ts'
import { createLive } from './live/live.ts'
import { startSession } from './live/session.ts'
import { createOutput, printFailure } from './output.ts'
import { withDeployer } from './policy/deployed-by.ts'
import { policyFile, projectModule } from './policy/load.ts'
import { withSuggestions } from './policy/mistakes.ts'
import { policyReload } from './policy/reload.ts'
import { type PolicyVersion, policyVersions, requireVersions } from './policy/versions.ts'
import { policyWatch } from './policy/watch.ts'
import { requireProject } from './project.ts'
import { type SwitchingServer, serveInWorker, superviseWorkers } from './serve-workers.ts'
import { createLog, type Log, logConsole, logStderr } from './server-log.ts'
import { logUncaught } from './uncaught.ts'

const MINIMUM_NODE = 22

export interface ServeOptions {
  readonly config?: string
  readonly values?: string
  readonly port?: number
  readonly host?: string
  readonly workers?: number
  readonly check?: boolean
  readonly watch?: boolean
  readonly pretty?: boolean
  readonly json?: boolean
}

/** The project's own `portcullis/node`: its policy is made by the same copy of the package. */
interface NodeModule {
  readonly serve: (options: ServerOptions) => Promise<Server>
  readonly check: (options: ServerOptions) => Promise<void>
}

/** Serves until a signal ends it. Throws a failure if it cannot begin. Ends this process. */
export async function serveOnNode(
  {
    config,
    values,
    port,
    host,
    workers = 1,
    check = false,
    watch = false,
    pretty = false,
    json = false,
  }: ServeOptions,
  env: NodeJS.ProcessEnv,
  folder: string,
): Promise<void> {
  requireNode(process.versions)
  boundHeap()
  const root = requireProject(folder)
  if (watch) requireVersions()
  const file = policyFile(config, '--config', folder, root)
  const versions = policyVersions(file, root)
  const current = await orEnd(() => versions.load(), json)
  const startWatch = watch ? policyWatch(versions.files) : undefined
  const { serve, check: checkConfiguration } = await projectModule<NodeModule>('node', root)
  const { policy, digest } = current
  const live = createLive(false)
  const options: ServerOptions = {
    ...{
      policy,
      policyDigest: digest,
      env: withDeployer(withValues(env, values), policy, file),
      port,
      host,
    },
    ...(pretty && {
      decided: (event, path) => live.decided({ ...event, path }),
      writeEvent: () => {},
    }),
  }
  if (check) {
    await orEnd(() => checkConfiguration(options), json)
    createOutput(json).result({ valid: true }, 'The policy and the environment are valid.')
    return
  }
  if (pretty && json) throw usage('--pretty and --json exclude each other')
  keepServing(process.stdout)
  const log = pretty ? createLogForPeople(root, printLine) : createLog(process.stdout)
  logConsole(log)
  endLog = logStderr(log)
  async function start(): Promise<SwitchingServer> {
    const server = await orEnd(() => serve(options), json)
    logUncaught(log)
    const use = ({ policy }: PolicyVersion, change: PolicyChange) => server.reload(policy, change)
    return { ...server, reloadPolicy: policyReload({ versions, current, file, use, log }) }
  }
  if (cluster.isWorker) return await serveInWorker(start)
  if (workers > 1) {
    // The primary loads the policy first, so that a mistake is logged once.
    const prepare = (use: () => Promise<void>) =>
      policyReload({ versions, current, file, use, log: onlyMistakes(log) })
    const reload = await superviseWorkers(workers, log, prepare)
    startWatch?.(() => reload('watch'))
    return
  }
  let reload = async () => {}
  process.on('SIGHUP', () => void reload())
  const server = await start()
  for (const { name, url } of server.listeners) log('info', `${name} listens on ${url}`, { url })
  const { url } = server
  if (pretty) live.ready({ url, ...pagesOf(policy, url) })
  else log('info', `Portcullis is ready on ${url}`, { url })
  reload = async () => {
    await server.reloadCertificate()
    await server.reloadPolicy('SIGHUP')
  }
  startWatch?.(() => server.reloadPolicy('watch'))
  const quit = Promise.withResolvers<string>()
  const keys = new AbortController()
  if (pretty)
    startSession({
      ready: { url, ...pagesOf(policy, url) },
      reload,
      quit: () => quit.resolve('q'),
      signal: keys.signal,
      print: printLine,
    })
  const signal = await Promise.race([untilSignal(), quit.promise])
  keys.abort()
  log('info', 'stopping', { signal })
  process.once('SIGINT', () => process.exit(REFUSED))
  process.once('SIGTERM', () => process.exit(REFUSED))
  await server.close()
  log('info', 'stopped')
  process.exit(0)
}

/** Returns the pages that the policy adds to the gateway. */
function pagesOf({ features }: Policy, url: string) {
  const page = (name: string, path: string) =>
    features.some((feature) => feature.name === name) ? url + path : undefined
  return { console: page('console', '/-/console'), docs: page('openapi', '/-/docs') }
}

/**
 * From now on, a log that cannot be written, as on a full disk, loses its lines and ends nothing. Later lines
 * are written again. Only the reader of a pipe that closes it ends the server, as before.
 */
function keepServing(log: NodeJS.WriteStream): void {
  const listeners = log.listeners('error') as ((error: NodeJS.ErrnoException) => void)[]
  log.removeAllListeners('error').on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') for (const listener of listeners) listener(error)
  })
}

const printLine = (line: string) => void process.stdout.write(`${line}\n`)

/** Each worker logs its change. */
const onlyMistakes =
  (log: Log): Log =>
  (level, ...line) =>
    level === 'info' ? undefined : log(level, ...line)

/** Ends the log of what is written to stderr. */
let endLog = () => {}

/** Ends the process with a sentence for a mistake in the configuration or an address in use. */
async function orEnd<Value>(work: () => Value | Promise<Value>, json: boolean): Promise<Value> {
  try {
    return await work()
  } catch (error) {
    const { name, message: original } = error as Error
    if (error instanceof Failure) throw error
    const isMistake = name === 'Misconfigured'
    const message = isMistake
      ? withSuggestions(original, mistakesOf(error as Error))
      : (listenFailure(error) ?? original)
    const failure = isMistake
      ? new Failure(USAGE, 'misconfigured', message, { findings: findingsOf(error as Error) })
      : refused('not_running', message)
    // Before the server starts, an operator reads the output. A list of mistakes has several lines.
    endLog()
    if (json) printFailure(failure, json)
    else process.stderr.write(`portcullis: ${message}\n`)
    process.exit(failure.exitCode)
  }
}

/** Variables of `env` take precedence over those of the file. Empty values count as absent. */
function withValues(env: NodeJS.ProcessEnv, file: string | undefined): NodeJS.ProcessEnv {
  if (file === undefined) return env
  const given = Object.entries(env).filter(([, value]) => value !== '')
  return { ...valuesIn(file), ...Object.fromEntries(given) }
}

function requireNode(versions: NodeJS.ProcessVersions): void {
  const mistake = mistakeOfRuntime(versions)
  if (mistake !== undefined) throw usage(mistake)
  const version = versions.node
  if (Number.parseInt(version, 10) >= MINIMUM_NODE) return
  throw usage(
    `this is Node ${version}, and the server needs Node ${MINIMUM_NODE} or later; ` +
      'install it, or run `npm install node@22` and start the server with npx',
  )
}

function untilSignal(): Promise<string> {
  return new Promise((stop) => {
    process.once('SIGINT', stop)
    process.once('SIGTERM', stop)
  })
}

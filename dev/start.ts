/**
 * `npm start`: runs all of Portcullis on this machine, says when it is ready, and stops every
 * process it started when it ends. The ready line and the examples go to stdout, progress and
 * errors to stderr.
 */
import { join } from 'node:path'
import { prepareDevVars, replace, setPublicUrl } from './dev-vars.ts'
import { examples } from './start/examples.ts'
import { environmentFile, gatewayVars } from './start/gateway-vars.ts'
import { openInstance } from './start/instance.ts'
import { policyTsconfig } from './start/policy-paths.ts'
import { requireFreePort } from './start/port.ts'
import { untilReady } from './start/readiness.ts'
import { openRedisRest } from './start/redis-rest.ts'
import {
  defaultPublicUrl,
  HOST,
  ROOT,
  readSettings,
  type Settings,
  USAGE,
} from './start/settings.ts'
import { createShutdown, type Shutdown } from './start/shutdown.ts'
import { complaint, startWrangler, type Wrangler } from './start/wrangler.ts'

const AUDIT_DATABASE = 'portcullis-audit'
const AUDIT_CONFIG = 'workers/audit.toml'

async function start(settings: Settings, shutdown: Shutdown): Promise<Wrangler> {
  const { port, verbose } = settings
  const { signal } = shutdown
  await requireFreePort(port)

  const instance = await openInstance(ROOT, port)
  shutdown.defer(instance.close)
  const { directory, stateDirectory } = instance

  const devVarsFile = join(ROOT, '.dev.vars')
  const ownUrl = settings.publicUrl ?? defaultPublicUrl(port)
  const devVars = await prepareDevVars(devVarsFile, ownUrl)
  // Gateways that run together name one issuer, so that each takes the others' tokens.
  const publicUrl = instance.alone ? ownUrl : (settings.publicUrl ?? devVars.PUBLIC_URL)
  if (instance.alone && devVars.PUBLIC_URL !== ownUrl) setPublicUrl(devVarsFile, ownUrl)
  const unknownYet = { url: `http://${HOST}`, token: devVars.UPSTASH_REDIS_REST_TOKEN }
  gatewayVars(settings, devVars, publicUrl, settings.upstash ?? unknownYet)

  const redisRest = await openRedisRest(settings, devVars.UPSTASH_REDIS_REST_TOKEN)
  shutdown.defer(redisRest.close)
  progress(`Redis: ${redisRest.description}`)
  const vars = gatewayVars(settings, devVars, publicUrl, redisRest)
  const varsFile = join(directory, 'gateway.env')
  replace(varsFile, environmentFile(vars))

  let ready = false
  const wranglerOptions = {
    directory,
    onLine(line: string): void {
      // Once it serves, what wrangler still says is the Workers' own warnings and errors.
      const tells = verbose || (ready && !signal.aborted && line.trim() !== '')
      if (tells) process.stderr.write(`${line}\n`)
    },
  }
  progress('preparing the audit database')
  const migrate = ['d1', 'migrations', 'apply', AUDIT_DATABASE, '--local', '-c', AUDIT_CONFIG]
  const migration = startWrangler({
    ...wranglerOptions,
    args: [...migrate, '--persist-to', stateDirectory],
  })
  shutdown.defer(migration.stop)
  const code = await migration.ended
  signal.throwIfAborted()
  if (code !== 0) throw new Error(`the audit database: ${complaint(migration.lines())}`)

  progress('starting the Workers')
  signal.throwIfAborted()
  const wrangler = startWrangler({
    ...wranglerOptions,
    args: [
      ...['dev', '-c', 'wrangler.toml', '-c', AUDIT_CONFIG],
      ...(vars.ORIGIN_URL === undefined ? ['-c', 'workers/origin.toml'] : []),
      ...['--ip', HOST, '--port', String(port), '--inspector-port', '0'],
      ...['--persist-to', stateDirectory, '--env-file', varsFile],
      ...policyArguments(settings.policyFile, directory),
      ...['--show-interactive-dev-session=false', ...(verbose ? [] : ['--log-level', 'warn'])],
    ],
  })
  shutdown.defer(wrangler.stop)
  const url = `http://${HOST}:${port}`
  await untilReady(url, wrangler, signal)
  ready = true

  console.log(`Portcullis is ready on ${url}`)
  console.log(await examples(url, vars, settings.policyFile === undefined))
  return wrangler
}

function policyArguments(policyFile: string | undefined, directory: string): readonly string[] {
  if (policyFile === undefined) return []
  const tsconfig = join(directory, 'tsconfig.json')
  replace(tsconfig, policyTsconfig(policyFile))
  return ['--tsconfig', tsconfig]
}

function progress(what: string): void {
  console.error(`portcullis: ${what}`)
}

async function main(): Promise<void> {
  // npm runs scripts in the package's folder; paths are meant from where the user is.
  const cwd = process.env.INIT_CWD ?? process.cwd()
  const shutdown = createShutdown()
  try {
    const settings = readSettings(process.argv.slice(2), process.env, cwd)
    if (settings === 'help') {
      console.log(USAGE)
      return await shutdown.exit(0)
    }
    const wrangler = await start(settings, shutdown)
    const code = await wrangler.ended
    if (shutdown.signal.aborted) return await shutdown.exit(0)
    throw new Error(`wrangler ended by itself (${code})\n${complaint(wrangler.lines())}`.trim())
  } catch (error) {
    if (!shutdown.signal.aborted) console.error(`portcullis: ${(error as Error).message}`)
    await shutdown.exit(1)
  }
}

await main()

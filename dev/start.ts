/**
 * `npm start`: runs all of Portcullis on this machine, reports when it is ready, and stops all its
 * processes at the end. The ready line and the examples go to stdout, progress and errors to
 * stderr.
 */
import { join } from 'node:path'
import { type DevVars, prepareDevVars, setPublicUrl } from './dev-vars.ts'
import { checkModelIn } from './model/file.ts'
import { writeDemoRelations } from './start/demo-relations.ts'
import { examples } from './start/examples.ts'
import { configOf, gatewayVars } from './start/gateway-vars.ts'
import { type Instance, openInstance } from './start/instance.ts'
import { keySetComplaints } from './start/key-sets.ts'
import { featuresOf } from './start/policy-features.ts'
import { requireFreePort } from './start/port.ts'
import { untilReady } from './start/readiness.ts'
import { openRedisRest } from './start/redis-rest.ts'
import { followWorkers, keepServing, type Serving } from './start/serving.ts'
import {
  defaultPublicUrl,
  HOST,
  ROOT,
  readSettings,
  type Settings,
  USAGE,
} from './start/settings.ts'
import { createShutdown, type Shutdown } from './start/shutdown.ts'
import { migrationArguments, serveArguments } from './start/workers.ts'
import { complaint, startWrangler, type Wrangler } from './start/wrangler.ts'

/**
 * Starts everything, and resolves when it is ready. Throws an `Error` that describes the problem.
 */
async function start(requested: Settings, shutdown: Shutdown): Promise<Serving> {
  await checkModelIn(ROOT)
  const devVarsFile = join(ROOT, '.dev.vars')
  const devVars = await prepareDevVars(devVarsFile, defaultPublicUrl(requested.port))
  const settings = withUpstashOf(devVars, requested)
  const unknownYet = { url: `http://${HOST}`, token: devVars.UPSTASH_REDIS_REST_TOKEN }
  // Checks the settings first. If the port is in use, a mistake in them would otherwise not be
  // reported.
  const likelyUrl = settings.publicUrl ?? defaultPublicUrl(settings.port)
  gatewayVars(settings, devVars, likelyUrl, settings.upstash ?? unknownYet)

  await requireFreePort(settings.port)
  const instance = await openInstance(ROOT, settings.port)
  shutdown.defer(instance.close)
  const publicUrl = publicUrlOf(settings, instance, devVars)
  if (instance.alone && devVars.PUBLIC_URL !== publicUrl) setPublicUrl(devVarsFile, publicUrl)

  const redisRest = await openRedisRest(settings, devVars.UPSTASH_REDIS_REST_TOKEN)
  shutdown.defer(redisRest.close)
  progress(`Redis: ${redisRest.description}`)
  const features = await featuresOf(settings.policyFile)
  const { authorizationServer: hasServer } = features
  const vars = gatewayVars(settings, devVars, publicUrl, redisRest, hasServer)

  const redisDied = redisRest.died.then((why) => {
    throw new Error(`the Redis that was started is gone, with all it held (${why}); start again`)
  })
  redisDied.catch(() => undefined)

  const { signal } = shutdown
  function run(args: readonly string[]): Wrangler {
    signal.throwIfAborted()
    const wrangler = startWrangler(args, instance.directory)
    shutdown.defer(wrangler.stop)
    if (settings.verbose) wrangler.follow(print)
    return wrangler
  }

  progress('preparing the audit database')
  const migration = run(migrationArguments(instance))
  const code = await migration.ended
  signal.throwIfAborted()
  if (code !== 0) throw new Error(`the audit database: ${complaint(migration.lines())}`)

  const url = `http://${HOST}:${settings.port}`
  const { issuers } = configOf(vars)
  async function serve(): Promise<Wrangler> {
    const workers = run(serveArguments(settings, instance, vars))
    const ready = untilReady(url, workers, {
      signal,
      progress,
      keySetComplaints: () => keySetComplaints(issuers, signal),
    })
    await Promise.race([ready, redisDied]).catch(async (error) => {
      await workers.stop()
      throw error
    })
    if (!settings.verbose) followWorkers(workers, { url, signal, print, progress })
    return workers
  }
  progress('starting the Workers')
  const workers = await serve()
  const isShipped = settings.policyFile === undefined
  const hasRelations = isShipped && (await writeDemoRelations(url, vars))
  const hasOperators = features.operators && hasServer
  signal.throwIfAborted()
  console.log(`Portcullis is ready on ${url}`)
  console.log(await examples(url, vars, { isShipped, hasRelations, hasOperators }))
  return { workers, redisDied, serveAgain: serve }
}

/**
 * Returns the public URL. Gateways that run together share one, so that each accepts the tokens of
 * the others.
 */
function publicUrlOf(settings: Settings, instance: Instance, devVars: DevVars): string {
  if (settings.publicUrl !== undefined) return settings.publicUrl
  return instance.alone ? defaultPublicUrl(settings.port) : devVars.PUBLIC_URL
}

/** Uses the REST endpoint from `.dev.vars`, unless the environment specifies a Redis. */
function withUpstashOf(devVars: DevVars, settings: Settings): Settings {
  const { UPSTASH_REDIS_REST_URL: url, UPSTASH_REDIS_REST_TOKEN: token } = devVars
  if (!url || settings.upstash !== undefined || settings.redisUrl !== undefined) return settings
  return { ...settings, upstash: { url, token } }
}

function progress(what: string): void {
  print(`portcullis: ${what}`)
}

function print(line: string): void {
  process.stderr.write(`${line}\n`)
}

async function main(): Promise<void> {
  // npm runs scripts in the package's folder, but paths are relative to the user's folder.
  const cwd = process.env.INIT_CWD ?? process.cwd()
  const shutdown = createShutdown()
  try {
    const settings = readSettings(process.argv.slice(2), process.env, cwd)
    if (settings === 'help') {
      console.log(USAGE)
      return await shutdown.exit(0)
    }
    const serving = await start(settings, shutdown)
    const { policyFile } = settings
    await keepServing(serving, { policyFile, signal: shutdown.signal, progress })
  } catch (error) {
    if (!shutdown.signal.aborted) console.error(`portcullis: ${(error as Error).message}`)
    await shutdown.exit(1)
  }
}

await main()

/** Runs a project on this machine: Redis, its REST server, the Workers and a demo origin. */
import { join } from 'node:path'
import { type DevVars, prepareDevVars, setPublicUrl } from '../dev-vars.ts'
import { startDemoOrigin } from './demo-origin.ts'
import { appVars, configOf, type GatewayVars, gatewayVars } from './gateway-vars.ts'
import { type Instance, openInstance } from './instance.ts'
import { keySetComplaints } from './key-sets.ts'
import { requireFreePort } from './port.ts'
import type { Project } from './project.ts'
import { untilReady } from './readiness.ts'
import { openRedisRest } from './redis-rest.ts'
import { followWorkers, keepServing, type Serving } from './serving.ts'
import { defaultPublicUrl, HOST, type Settings } from './settings.ts'
import type { Shutdown } from './shutdown.ts'
import { migrationArguments, serveArguments } from './workers.ts'
import { complaint, startWrangler, type Wrangler } from './wrangler.ts'

/** Receives the address of the gateway and the example requests, once, when it is ready. */
export type OnReady = (url: string, examples: string) => void

/**
 * Serves `project` until its processes end, and then throws an `Error` that describes the problem.
 * Writes progress to stderr. The processes end with `shutdown`.
 */
export async function serveProject(
  project: Project,
  settings: Settings,
  shutdown: Shutdown,
  onReady: OnReady,
): Promise<never> {
  const serving = await start(project, settings, shutdown, onReady)
  const { policyFile } = settings
  return await keepServing(serving, { project, policyFile, signal: shutdown.signal, progress })
}

/** Starts everything, and resolves when it is ready. */
async function start(
  project: Project,
  requested: Settings,
  shutdown: Shutdown,
  onReady: OnReady,
): Promise<Serving> {
  if (requested.policyFile !== undefined && project.policyArguments === undefined) {
    throw new Error('PORTCULLIS_CONFIG: only a checkout of Portcullis reads another policy file')
  }
  await project.checkModel()
  const devVarsFile = join(project.root, '.dev.vars')
  const kept = await prepareDevVars(devVarsFile, defaultPublicUrl(requested.port))
  const settings = withUpstashOf(kept, requested)
  const devVars: DevVars = { ...project.vars, ...kept }
  const unknownYet = { url: `http://${HOST}`, token: devVars.UPSTASH_REDIS_REST_TOKEN }
  // Checks the settings first. If the port is in use, a mistake in them would otherwise not be
  // reported.
  const likelyUrl = settings.publicUrl ?? defaultPublicUrl(settings.port)
  const likely = gatewayVars(settings, devVars, likelyUrl, settings.upstash ?? unknownYet)

  await requireFreePort(settings.port)
  const instance = await openInstance(project.root, settings.port)
  shutdown.defer(instance.close)
  const publicUrl = publicUrlOf(settings, instance, devVars)
  if (instance.alone && devVars.PUBLIC_URL !== publicUrl) setPublicUrl(devVarsFile, publicUrl)

  const redisRest = await openRedisRest(settings, devVars.UPSTASH_REDIS_REST_TOKEN)
  shutdown.defer(redisRest.close)
  progress(`Redis: ${redisRest.description}`)
  const origin = await originVariable(project, likely, shutdown)
  const features = await project.featuresOf(settings.policyFile, instance.directory)
  const { authorizationServer: hasServer } = features
  const checked = gatewayVars(settings, { ...devVars, ...origin }, publicUrl, redisRest, hasServer)
  const vars = project.kind === 'app' ? appVars(checked) : checked

  const redisDied = redisRest.died.then((why) => {
    throw new Error(`the local Redis ended, and its data is lost (${why}); start again`)
  })
  redisDied.catch(() => undefined)

  const { signal } = shutdown
  function run(args: readonly string[]): Wrangler {
    signal.throwIfAborted()
    const wrangler = startWrangler(args, instance.directory, project)
    shutdown.defer(wrangler.stop)
    if (settings.verbose) wrangler.follow(print)
    return wrangler
  }

  if (project.migrations !== undefined) {
    progress('preparing the audit database')
    const migration = run(migrationArguments(project.migrations, instance))
    const code = await migration.ended
    signal.throwIfAborted()
    if (code !== 0) throw new Error(`the audit database: ${complaint(migration.lines())}`)
  }

  const url = `http://${HOST}:${settings.port}`
  const { issuers } = configOf(vars)
  async function serve(): Promise<Wrangler> {
    const workers = run(serveArguments(project, settings, instance, vars))
    const ready = untilReady(url, workers, {
      acceptsAnyResponse: project.kind === 'app',
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
  const { policyFile } = settings
  const examples = await project.examples({ url, vars, features, policyFile })
  signal.throwIfAborted()
  onReady(url, examples)
  return { workers, redisDied, serveAgain: serve }
}

/**
 * Starts a demo origin if the gateway needs one, and returns the variable that selects it. A demo
 * origin that is a Worker needs no variable.
 */
async function originVariable(
  project: Project,
  { ORIGIN_URL: configured }: GatewayVars,
  shutdown: Shutdown,
): Promise<{ readonly ORIGIN_URL?: string }> {
  const isNeeded = project.kind === 'gateway' && configured === undefined
  if (!isNeeded || project.demoOrigin !== undefined) return {}
  const origin = await startDemoOrigin()
  shutdown.defer(origin.close)
  progress('origin: a demo that answers every request; set ORIGIN_URL to use your API')
  return { ORIGIN_URL: origin.url }
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

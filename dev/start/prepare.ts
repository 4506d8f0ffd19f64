/** Prepares what a gateway on this machine needs: its port, variables, Redis and origin. */
import { join } from 'node:path'
import { type DevVars, prepareDevVars, setPublicUrl } from '../dev-vars.ts'
import { startDemoOrigin } from './demo-origin.ts'
import { appVars, type GatewayVars, gatewayVars } from './gateway-vars.ts'
import { type Instance, openInstance } from './instance.ts'
import { requireFreePort } from './port.ts'
import type { PolicyFeatures, Project } from './project.ts'
import { openRedisRest, type RedisConnection } from './redis-rest.ts'
import { defaultPublicUrl, HOST, type Settings } from './settings.ts'
import type { Shutdown } from './shutdown.ts'

/** What is ready before the gateway starts. */
export interface Prepared {
  readonly settings: Settings
  readonly instance: Instance
  readonly redis: RedisConnection
  readonly features: PolicyFeatures
  readonly vars: GatewayVars
  /** Rejects if a Redis that was started here ends unexpectedly. Never resolves. */
  readonly redisDied: Promise<never>
}

/**
 * Checks the settings, and starts what the gateway needs, until `shutdown`. Throws an `Error` that
 * describes the problem.
 */
export async function prepare(
  project: Project,
  requested: Settings,
  shutdown: Shutdown,
): Promise<Prepared> {
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

  const redis = await openRedisRest(settings, devVars.UPSTASH_REDIS_REST_TOKEN)
  shutdown.defer(redis.close)
  progress(`Redis: ${redis.description}`)
  const origin = await originVariable(project, likely, shutdown)
  const features = await project.featuresOf(settings.policyFile, instance.directory)
  const checked = gatewayVars(settings, { ...devVars, ...origin }, publicUrl, redis, features)
  const vars = project.kind === 'app' ? appVars(checked) : checked

  const redisDied = redis.died.then((why) => {
    throw new Error(`the local Redis ended, and its data is lost (${why}); start again`)
  })
  redisDied.catch(() => undefined)
  return { settings, instance, redis, features, vars, redisDied }
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

export function progress(what: string): void {
  print(`portcullis: ${what}`)
}

export function print(line: string): void {
  process.stderr.write(`${line}\n`)
}

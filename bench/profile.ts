/** `--profile`: shows where an isolate spends its time. Default: the full pipeline. */
import { readFileSync } from 'node:fs'
import type { Bench, PipelineBench } from './bench.ts'
import { type Bundle, bundleWorker, LAYERS_CONFIG } from './bundle.ts'
import { type CpuProfile, profileWhile } from './inspector.ts'
import { startLayers } from './layers-workerd.ts'
import { drive, type Load } from './load.ts'
import { orderLoad } from './order-requests.ts'
import { preflight } from './preflight.ts'
import { cpuBetween, cpuTimesOf } from './process-times.ts'
import { profileTables } from './profile-report.ts'
import { attribute, stageTimes } from './profile-stages.ts'
import { moduleFinder, summarise } from './profile-summary.ts'
import { sampledStacks } from './profile-tree.ts'
import { rounded } from './statistics.ts'

/** V8's optimising compiler needs thousands of requests to reach a stable state. */
const MIN_WARM_UP_SECONDS = 2
const KEPT_FUNCTIONS = 100

/** A running isolate and its load. */
export interface Profiled extends Pick<Profile, 'name'> {
  /** Title in the summary. */
  readonly title: string
  /** Not minified, so that functions have names. */
  readonly bundle: Bundle
  readonly pid: number
  /** Authority of the inspector. */
  readonly inspector: string
  readonly service: string
  readonly load: Omit<Load, 'seconds'>
}

/** The output of a profile. */
export interface Profile {
  /** Name of the files, after the date. */
  readonly name: string
  /** Content of the results file. */
  readonly result: object
  /** The samples, in the `.cpuprofile` format of V8. */
  readonly cpuProfile: CpuProfile
}

/**
 * Profiles the last of the selected layers; default: the full pipeline. Prints a summary. Throws
 * for a wrong response.
 */
export async function profileGateway(bench: PipelineBench): Promise<Profile> {
  const { options, backends, tokens, directory, shutdown } = bench
  bench.onProgress('profile: starting')
  const bundle = await bundleWorker(LAYERS_CONFIG, directory, true)
  const layers = options.layers.slice(-1)
  const [layer] = layers
  const { signingKeys } = tokens
  const target = await startLayers({
    ...{ bundle, backends, signingKeys, layers, directory },
    inspect: true,
  })
  shutdown.defer(target.close)
  shutdown.signal.throwIfAborted()
  const { pid, inspector } = target
  if (layer === undefined || inspector === undefined) throw new Error('there is nothing to profile')
  await preflight(target, layers, tokens)
  const { request, connections } = options
  const orders = orderLoad(target.urlOf(layer), request, tokens.writers)
  const load = { ...orders, connections }
  const { id, title } = layer
  const name = id === 'full' ? 'profile' : `profile-${id}`
  const profiled = { name, title, bundle, pid, inspector, service: id, load }
  const { result, cpuProfile } = await sample(bench, profiled)
  await target.close()
  const asked = { layer: id, request, connections, seconds: options.seconds }
  return { name, result: { options: asked, ...result }, cpuProfile }
}

/** Profiles an isolate under its load. Prints a summary. */
export async function sample(
  { options, onProgress }: Pick<Bench, 'options' | 'onProgress'>,
  { name, title, bundle, pid, inspector, service, load }: Profiled,
): Promise<Profile> {
  const { seconds, warmUpSeconds } = options
  onProgress('profile: warming up')
  await drive({ ...load, seconds: Math.max(warmUpSeconds, MIN_WARM_UP_SECONDS) })
  onProgress('profile: sampling')
  let requests = 0
  const before = cpuTimesOf(pid)
  const profile = await profileWhile(inspector, service, async () => {
    requests = (await drive({ ...load, seconds })).requests
  })
  const cpu = cpuBetween(before, cpuTimesOf(pid))
  const cpuMicros = rounded((cpu.userMicros + cpu.systemMicros) / requests, 1)
  const moduleOf = moduleFinder(readFileSync(bundle.file, 'utf8'))
  const summary = summarise(profile, requests, moduleOf)
  const attributed = sampledStacks(profile, moduleOf).map(attribute)
  const stages = stageTimes(attributed, requests)
  console.log(`\n${profileTables({ title, requests, cpuMicros, stages, summary })}\n`)
  const { busyMicros, modules, functions } = summary
  return {
    name,
    result: {
      requests,
      cpuMicros,
      busyMicros,
      stages,
      modules,
      functions: functions.slice(0, KEPT_FUNCTIONS),
    },
    cpuProfile: profile,
  }
}

/** `--profile`: where an isolate spends its time, that of the full pipeline unless asked otherwise. */
import { readFileSync } from 'node:fs'
import type { Bench, PipelineBench } from './bench.ts'
import { type Bundle, bundleWorker, LAYERS_CONFIG } from './bundle.ts'
import { profileWhile } from './inspector.ts'
import { LAYERS } from './layers.ts'
import { startLayers } from './layers-workerd.ts'
import { drive, type Load } from './load.ts'
import { orderLoad } from './order-requests.ts'
import { preflight } from './preflight.ts'
import { cpuBetween, cpuTimesOf } from './process-times.ts'
import { moduleFinder, type ProfileSummary, summarise } from './profile-summary.ts'
import { table } from './report.ts'
import { rounded } from './statistics.ts'

const PROFILED = 'full'
/** V8's optimising compiler needs thousands of requests until nothing changes any more. */
const MIN_WARM_UP_SECONDS = 2
const SHOWN_FUNCTIONS = 40
const KEPT_FUNCTIONS = 100
const SHOWN_MODULES = 30

/** An isolate that is up, and how to keep it busy. */
export interface Profiled {
  /** In the summary. */
  readonly title: string
  /** Not minified, so that functions have names. */
  readonly bundle: Bundle
  readonly pid: number
  /** Authority of the inspector. */
  readonly inspector: string
  readonly service: string
  readonly load: Omit<Load, 'seconds'>
}

/** Profiles the full pipeline. Prints a summary, and returns it. Throws for a wrong answer. */
export async function profileGateway(bench: PipelineBench): Promise<object> {
  const { options, backends, tokens, directory, shutdown } = bench
  bench.onProgress('profile: starting')
  const bundle = await bundleWorker(LAYERS_CONFIG, directory, true)
  const layers = LAYERS.filter(({ id }) => id === PROFILED)
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
  const title = 'Full pipeline'
  const profile = await sample(bench, { title, bundle, pid, inspector, service: layer.id, load })
  await target.close()
  return { options: { request, connections, seconds: options.seconds }, ...profile }
}

/** Profiles an isolate under its load. Prints a summary, and returns it. */
export async function sample(
  { options, onProgress }: Pick<Bench, 'options' | 'onProgress'>,
  { title, bundle, pid, inspector, service, load }: Profiled,
): Promise<object> {
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
  const summary = summarise(profile, requests, moduleFinder(readFileSync(bundle.file, 'utf8')))
  console.log(`\n${profileTables(title, summary, requests, cpuMicros)}\n`)
  return {
    requests,
    cpuMicros,
    busyMicros: summary.busyMicros,
    modules: summary.modules,
    functions: summary.functions.slice(0, KEPT_FUNCTIONS),
  }
}

function profileTables(
  title: string,
  { busyMicros, modules, functions }: ProfileSummary,
  requests: number,
  cpuMicros: number,
): string {
  const percent = (share: number) => (share * 100).toFixed(1)
  return [
    `${title} under workerd serve, ${requests} requests: its isolate's thread was busy for`,
    `${busyMicros.toFixed(0)} us of each by the clock, and the process took ${cpuMicros.toFixed(0)} us of CPU, profiler included.`,
    'Sampled: small figures are rough. Where the two differ much, threads waited for a core.',
    '',
    table(
      ['module', 'self us', 'platform us', '%'],
      modules
        .slice(0, SHOWN_MODULES)
        .map(({ module, selfMicros, platformMicros, share }) => [
          module,
          selfMicros.toFixed(1),
          platformMicros.toFixed(1),
          percent(share),
        ]),
    ),
    '',
    table(
      ['function', 'module', 'self us', '%'],
      functions
        .slice(0, SHOWN_FUNCTIONS)
        .map(({ name, module, platform, selfMicros, share }) => [
          platform ? `${name} (platform)` : name,
          module,
          selfMicros.toFixed(1),
          percent(share),
        ]),
      2,
    ),
  ].join('\n')
}

/** `--profile`: where the full pipeline spends the time of its isolate. */
import { readFileSync } from 'node:fs'
import type { Bench } from './bench.ts'
import { bundleWorker } from './bundle.ts'
import { profileWhile } from './inspector.ts'
import { LAYERS } from './layers.ts'
import { startLayers } from './layers-workerd.ts'
import { drive } from './load.ts'
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

/** Prints a summary, and returns it. Throws for a wrong answer. */
export async function profileGateway(bench: Bench): Promise<object> {
  const { options, backends, tokens, directory, shutdown } = bench
  bench.onProgress('profile: starting')
  const bundle = await bundleWorker(directory, true)
  const layers = LAYERS.filter(({ id }) => id === PROFILED)
  const [layer] = layers
  const { signingKeys } = tokens
  const target = await startLayers({
    ...{ bundle, backends, signingKeys, layers, directory },
    inspect: true,
  })
  shutdown.defer(target.close)
  shutdown.signal.throwIfAborted()
  if (layer === undefined || target.inspector === undefined)
    throw new Error('there is nothing to profile')
  await preflight(target, layers, tokens)
  const { request, connections, seconds, warmUpSeconds } = options
  const orders = orderLoad(target.urlOf(layer), request, tokens[layer.tokens])
  const load = { ...orders, connections }
  bench.onProgress('profile: warming up')
  await drive({ ...load, seconds: Math.max(warmUpSeconds, MIN_WARM_UP_SECONDS) })
  bench.onProgress('profile: sampling')
  let requests = 0
  const before = cpuTimesOf(target.pid)
  const profile = await profileWhile(target.inspector, layer.id, async () => {
    requests = (await drive({ ...load, seconds })).requests
  })
  const cpu = cpuBetween(before, cpuTimesOf(target.pid))
  const cpuMicros = rounded((cpu.userMicros + cpu.systemMicros) / requests, 1)
  await target.close()
  const summary = summarise(profile, requests, moduleFinder(readFileSync(bundle.file, 'utf8')))
  console.log(`\n${profileTables(summary, requests, cpuMicros)}\n`)
  return {
    options: { request, connections, seconds },
    requests,
    cpuMicros,
    busyMicros: summary.busyMicros,
    modules: summary.modules,
    functions: summary.functions.slice(0, KEPT_FUNCTIONS),
  }
}

function profileTables(
  { busyMicros, modules, functions }: ProfileSummary,
  requests: number,
  cpuMicros: number,
): string {
  const percent = (share: number) => (share * 100).toFixed(1)
  return [
    `Full pipeline under workerd serve, ${requests} requests: its isolate's thread was busy for`,
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

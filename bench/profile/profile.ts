/** `--profile`: shows where an isolate spends its time. Default: the full pipeline. */
import { readFileSync } from 'node:fs'
import { layerContestant, preflight } from '../layers/contestants.ts'
import { sendClosed } from '../load/closed.ts'
import type { Contestant } from '../measure/rounds.ts'
import { rounded } from '../measure/statistics.ts'
import type { Detail } from '../options.ts'
import { cpuBetween, cpuTimesOf, totalMicros } from '../processes/proc.ts'
import { type Bundle, bundleWorker, LAYERS_CONFIG } from '../stack/bundle.ts'
import { mintTokens } from '../stack/credentials.ts'
import { type StartContext, startGround, startLayers } from '../stack/gateway.ts'
import { type CpuProfile, profileWhile } from '../stack/inspector.ts'
import { table } from '../text.ts'
import { type CaseId, caseContestant } from '../tokens/cases.ts'
import { startTokens } from '../tokens/preflight.ts'
import { attribute, type StageTime, stageTimes } from './stages.ts'
import {
  busyMicrosOf,
  type ModuleTime,
  moduleFinder,
  moduleTimes,
  sampledStacks,
} from './summary.ts'

/** V8's optimising compiler needs thousands of requests to reach a stable state. */
const MIN_WARM_UP_SECONDS = 2
const SHOWN_MODULES = 30

export interface ProfileContext extends StartContext {
  readonly options: Detail
}

export interface Profile {
  /** Name of the files, after the date. */
  readonly name: string
  readonly redis: string
  readonly result: object
  /** The samples, in the `.cpuprofile` format of V8. */
  readonly cpuProfile: CpuProfile
}

/** Profiles the last of the selected layers, and prints a summary. Throws for a wrong response. */
export async function profileGateway(context: ProfileContext): Promise<Profile> {
  const { options, directory, shutdown } = context
  context.onProgress('profile: starting')
  const bundle = await bundleWorker(LAYERS_CONFIG, directory, true)
  const ground = await startGround(context)
  const { backends, signingKeys } = ground
  const layers = options.layers.slice(-1)
  const [layer] = layers
  const target = await startLayers({
    bundle,
    backends,
    signingKeys,
    layers,
    directory,
    inspect: true,
  })
  shutdown.defer(target.close)
  shutdown.signal.throwIfAborted()
  const { inspector } = target
  if (layer === undefined || inspector === undefined) throw new Error('nothing to profile')
  const tokens = await mintTokens(ground)
  await preflight(target, layers, tokens)
  const { request, connections, seconds } = options
  const contestant = layerContestant(target, layer, { request, tokens })
  const sampled = await sample(context, contestant, { bundle, inspector, service: layer.id })
  await target.close()
  return {
    name: layer.id === 'full' ? 'profile' : `profile-${layer.id}`,
    redis: backends.redis.kind,
    result: { options: { layer: layer.id, request, connections, seconds }, ...sampled.result },
    cpuProfile: sampled.cpuProfile,
  }
}

/** Profiles a case of the scenario `tokens`. Prints a summary. Throws for a wrong response. */
export async function profileCase(context: ProfileContext, id: CaseId): Promise<Profile> {
  const { gateway, cases } = await startTokens(context, true)
  const { inspector, bundle, backends } = gateway
  const profiled = cases.find((each) => each.id === id)
  if (profiled === undefined || inspector === undefined) throw new Error('nothing to profile')
  const service = id.startsWith('validate') ? 'validation' : 'gateway'
  const contestant = caseContestant(profiled, gateway)
  const sampled = await sample(context, contestant, { bundle, inspector, service })
  await gateway.close()
  const { connections, seconds } = context.options
  return {
    name: `profile-${id}`,
    redis: backends.redis.kind,
    result: { options: { case: id, connections, seconds }, ...sampled.result },
    cpuProfile: sampled.cpuProfile,
  }
}

/** Profiles an isolate under its load. The bundle must not be minified. */
async function sample(
  { options, onProgress }: ProfileContext,
  { title, pid, url, questions }: Contestant,
  of: { readonly bundle: Bundle; readonly inspector: string; readonly service: string },
): Promise<Pick<Profile, 'result' | 'cpuProfile'>> {
  const { seconds, warmUpSeconds, connections } = options
  const load = { url, questions, connections }
  onProgress('profile: warming up')
  await sendClosed({ ...load, until: { seconds: Math.max(warmUpSeconds, MIN_WARM_UP_SECONDS) } })
  onProgress('profile: sampling')
  let requests = 0
  const before = cpuTimesOf(pid)
  const cpuProfile = await profileWhile(of.inspector, of.service, async () => {
    requests = (await sendClosed({ ...load, until: { seconds } })).right
  })
  const cpuMicros = rounded(totalMicros(cpuBetween(before, cpuTimesOf(pid))) / requests, 1)
  const moduleOf = moduleFinder(readFileSync(of.bundle.file, 'utf8'))
  const stacks = sampledStacks(cpuProfile, moduleOf)
  const stages = stageTimes(stacks.map(attribute), requests)
  const modules = moduleTimes(stacks, requests)
  const busyMicros = busyMicrosOf(stacks, requests)
  const result = { requests, cpuMicros, busyMicros, stages, modules }
  console.log(
    `\n${title} under workerd serve, ${requests} requests: the thread of the isolate was\n` +
      `busy for ${busyMicros.toFixed(0)} us per request, and the process used ${cpuMicros.toFixed(0)} us of CPU, with the profiler.\n` +
      'These are samples: small figures are rough. A large difference means waiting for a core.\n\n' +
      `${stageTable(stages)}\n\n${moduleTable(modules)}\n`,
  )
  return { result, cpuProfile }
}

function stageTable(stages: readonly StageTime[]): string {
  return table(
    ['stage', 'us', 'platform us', 'by module us', '%'],
    stages
      .filter(({ micros }) => micros > 0)
      .map(({ stage, micros, platformMicros, byModuleMicros, share }) => [
        stage,
        ...[micros, platformMicros, byModuleMicros, share * 100].map((value) => value.toFixed(1)),
      ]),
  )
}

function moduleTable(modules: readonly ModuleTime[]): string {
  return table(
    ['module', 'self us', 'platform us', '%'],
    modules
      .slice(0, SHOWN_MODULES)
      .map(({ module, selfMicros, platformMicros, share }) => [
        module,
        ...[selfMicros, platformMicros, share * 100].map((value) => value.toFixed(1)),
      ]),
  )
}

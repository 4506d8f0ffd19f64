/** `--profile`: shows where an isolate spends its time. Default: the full pipeline. */
import { readFileSync } from 'node:fs'
import { layerContestant, preflight } from '../layers/contestants.ts'
import { sendClosed } from '../load/closed.ts'
import { rounded } from '../measure/statistics.ts'
import type { Detail } from '../options.ts'
import { cpuBetween, cpuTimesOf, totalMicros } from '../processes/proc.ts'
import { bundleWorker, LAYERS_CONFIG } from '../stack/bundle.ts'
import { mintTokens } from '../stack/credentials.ts'
import { type StartContext, startGround, startLayers } from '../stack/gateway.ts'
import { type CpuProfile, profileWhile } from '../stack/inspector.ts'
import { table } from '../text.ts'
import { attribute, type StageTime, stageTimes } from './stages.ts'
import { busyMicrosOf, moduleFinder, sampledStacks } from './summary.ts'

/** V8's optimising compiler needs thousands of requests to reach a stable state. */
export const MIN_WARM_UP_SECONDS = 2

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
  const { options, directory, shutdown, onProgress } = context
  const { request, connections, seconds, warmUpSeconds } = options
  onProgress('profile: starting')
  const bundle = await bundleWorker(LAYERS_CONFIG, directory, true)
  const ground = await startGround(context)
  const layers = options.layers.slice(-1)
  const [layer] = layers
  const target = await startLayers({ ...ground, bundle, layers, directory, inspect: true })
  shutdown.defer(target.close)
  shutdown.signal.throwIfAborted()
  const { inspector } = target
  if (layer === undefined || inspector === undefined) throw new Error('nothing to profile')
  const tokens = await mintTokens(ground)
  await preflight(target, layers, tokens)
  const { title, pid, url, questions } = layerContestant(target, layer, { request, tokens })
  const load = { url, questions, connections }
  onProgress('profile: warming up')
  await sendClosed({ ...load, until: { seconds: Math.max(warmUpSeconds, MIN_WARM_UP_SECONDS) } })
  onProgress('profile: sampling')
  let requests = 0
  const before = cpuTimesOf(pid)
  const cpuProfile = await profileWhile(inspector, layer.id, async () => {
    requests = (await sendClosed({ ...load, until: { seconds } })).right
  })
  const cpuMicros = rounded(totalMicros(cpuBetween(before, cpuTimesOf(pid))) / requests, 1)
  await target.close()
  const stacks = sampledStacks(cpuProfile, moduleFinder(readFileSync(bundle.file, 'utf8')))
  const stages = stageTimes(stacks.map(attribute), requests)
  const busyMicros = busyMicrosOf(stacks, requests)
  console.log(
    `\n${title} under workerd serve, ${requests} requests: the thread of the isolate was\n` +
      `busy for ${busyMicros.toFixed(0)} us per request, and the process used ${cpuMicros.toFixed(0)} us of CPU, with the profiler.\n` +
      'These are samples: small figures are rough. A large difference means waiting for a core.\n\n' +
      `${stageTable(stages)}\n`,
  )
  return {
    name: layer.id === 'full' ? 'profile' : `profile-${layer.id}`,
    redis: ground.backends.redis.kind,
    result: {
      options: { layer: layer.id, request, connections, seconds },
      requests,
      cpuMicros,
      busyMicros,
      stages,
    },
    cpuProfile,
  }
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

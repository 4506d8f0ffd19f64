/** `--profile`: shows where the process of a gateway spends its time, by package and folder. */
import { readFileSync } from 'node:fs'
import { freePort } from '../../dev/free-port.ts'
import { HOST } from '../../dev/start/settings.ts'
import { sendClosed } from '../load/closed.ts'
import { orders } from '../load/questions.ts'
import { checkGateway } from '../load/refusals.ts'
import { rounded } from '../measure/statistics.ts'
import { oursDurable, oursLog, startOnNode } from '../node/contestants.ts'
import type { Detail } from '../options.ts'
import { cpuBetween, familyCpuOf, totalMicros } from '../processes/proc.ts'
import type { Runtime } from '../runtimes.ts'
import { bundleWorker, REQUESTS_CONFIG } from '../stack/bundle.ts'
import { type BenchTokens, mintTokens } from '../stack/credentials.ts'
import { type Ground, type StartContext, startGateway, startGround } from '../stack/gateway.ts'
import { profileWhile, targetsOf } from '../stack/inspector.ts'
import { table } from '../text.ts'
import { ownerTimes, type PathOf, pathOfUrl, pathsInBundle } from './owners.ts'

/** V8's optimising compiler needs thousands of requests to reach a stable state. */
const MIN_WARM_UP_SECONDS = 2
const CONNECTIONS = 32
const SECONDS = 8

export interface ProfileContext extends StartContext {
  readonly options: Detail
  readonly runtime: Runtime
}

/** A gateway with an open inspector. */
interface Inspected {
  readonly title: string
  readonly url: string
  readonly pid: number
  readonly inspector: string
  readonly target: string
  readonly pathOf: PathOf
}

/** Profiles a gateway with the shipped policy, and prints a summary. Throws for a wrong response. */
export async function profile(context: ProfileContext) {
  const { options, runtime, onProgress } = context
  const { request, durable } = options
  const { connections = CONNECTIONS, seconds = SECONDS, warmUpSeconds = 0 } = options
  onProgress('profile: starting')
  const ground = await startGround(context)
  const tokens = await mintTokens(ground)
  const start = runtime === 'node' ? inspectedOnNode : inspectedOnWorkerd
  const { title, url, pid, inspector, target, pathOf } = await start(context, ground, tokens)
  await checkGateway(title, url, tokens)
  const load = { url, questions: orders(request, tokens.writers), connections }
  onProgress('profile: warming up')
  await sendClosed({ ...load, until: { seconds: Math.max(warmUpSeconds, MIN_WARM_UP_SECONDS) } })
  onProgress('profile: sampling')
  let requests = 0
  const before = familyCpuOf(pid)
  const cpuProfile = await profileWhile(inspector, target, async () => {
    requests = (await sendClosed({ ...load, until: { seconds } })).right
  })
  const cpuMicros = rounded(totalMicros(cpuBetween(before, familyCpuOf(pid))) / requests, 1)
  const { owners, busyMicros } = ownerTimes(cpuProfile, requests, pathOf)
  console.log(
    `\n${title} (${runtime}), ${requests} requests: the thread was busy for ${busyMicros.toFixed(0)} us\n` +
      `per request, and the process used ${cpuMicros.toFixed(0)} us of CPU, with the profiler.\n\n` +
      `${table(
        ['running function of', 'us', '%'],
        owners.map(({ owner, micros, share }) => [
          owner,
          ...[micros, share * 100].map((value) => value.toFixed(1)),
        ]),
      )}\n`,
  )
  return {
    name: `profile-${runtime}${durable ? '-durable' : ''}`,
    redis: ground.backends.redis.kind,
    result: {
      options: { request, connections, seconds, durable },
      requests,
      cpuMicros,
      busyMicros,
      owners,
    },
    cpuProfile,
  }
}

async function inspectedOnNode(
  context: ProfileContext,
  ground: Ground,
  tokens: BenchTokens,
): Promise<Inspected> {
  const gateway = context.options.durable ? oursDurable : oursLog
  const inspector = `${HOST}:${await freePort()}`
  const flags = [`--inspect=${inspector}`]
  const { url, pid } = await startOnNode(context, gateway, { ground, tokens, flags })
  const [target] = await targetsOf(inspector)
  if (target === undefined) throw new Error('the inspector has no target')
  return { title: gateway.title, url, pid, inspector, target: target.id, pathOf: pathOfUrl }
}

async function inspectedOnWorkerd(context: ProfileContext, ground: Ground): Promise<Inspected> {
  const bundle = await bundleWorker(REQUESTS_CONFIG, context.directory, true)
  const target = 'gateway'
  const started = { ground, bundle, names: [target], inspect: true }
  const { pid, inspector = '', originOf } = await startGateway(context, started)
  const pathOf = pathsInBundle(readFileSync(bundle.file, 'utf8'))
  const url = `${originOf(target)}/${target}`
  return { title: 'Portcullis', url, pid, inspector, target, pathOf }
}

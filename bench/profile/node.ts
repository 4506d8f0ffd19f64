/** `--profile --runtime node`: shows where the process of the gateway on Node spends its time. */
import { freePort } from '../../dev/free-port.ts'
import { HOST } from '../../dev/start/settings.ts'
import { sendClosed } from '../load/closed.ts'
import { orders } from '../load/questions.ts'
import { rounded } from '../measure/statistics.ts'
import { inspectedOnNode } from '../node/peers.ts'
import { startAll } from '../peers/start.ts'
import { cpuBetween, cpuTimesOf, totalMicros } from '../processes/proc.ts'
import { mintTokens } from '../stack/credentials.ts'
import { startGround } from '../stack/gateway.ts'
import { profileWhile, targetsOf } from '../stack/inspector.ts'
import { table } from '../text.ts'
import { ownerOfUrl, ownerTimes } from './owners.ts'
import { MIN_WARM_UP_SECONDS, type Profile, type ProfileContext } from './profile.ts'
import { busyMicrosOf, sampledStacks } from './summary.ts'

/** Profiles reads under the shipped policy, and prints a summary. Throws for a wrong response. */
export async function profileOnNode(context: ProfileContext): Promise<Profile> {
  const { options, onProgress } = context
  const { connections, seconds, warmUpSeconds } = options
  onProgress('profile: starting')
  const ground = await startGround(context)
  const { backends } = ground
  const tokens = await mintTokens(ground)
  const inspector = `${HOST}:${await freePort()}`
  const peers = [inspectedOnNode(inspector)]
  const [entrant] = (await startAll({ ...context, backends, tokens, peers })).entrants
  const [target] = await targetsOf(inspector)
  if (entrant === undefined || target === undefined) throw new Error('nothing to profile')
  const { url, pid, version } = entrant.running
  const load = { url, questions: orders('read', tokens.writers), connections }
  onProgress('profile: warming up')
  await sendClosed({ ...load, until: { seconds: Math.max(warmUpSeconds, MIN_WARM_UP_SECONDS) } })
  onProgress('profile: sampling')
  let requests = 0
  const before = cpuTimesOf(pid)
  const cpuProfile = await profileWhile(inspector, target.id, async () => {
    requests = (await sendClosed({ ...load, until: { seconds } })).right
  })
  const cpuMicros = rounded(totalMicros(cpuBetween(before, cpuTimesOf(pid))) / requests, 1)
  const stacks = sampledStacks(cpuProfile, ownerOfUrl)
  const owners = ownerTimes(stacks, requests)
  const busyMicros = busyMicrosOf(stacks, requests)
  console.log(
    `\n${entrant.peer.title} (${version}), ${requests} requests: the main thread was busy for ` +
      `${busyMicros.toFixed(0)} us\nper request, and the process used ${cpuMicros.toFixed(0)} us of CPU, with the profiler.\n\n` +
      `${table(
        ['running function of', 'us', '%'],
        owners.map(({ owner, micros, share }) => [
          owner,
          ...[micros, share * 100].map((value) => value.toFixed(1)),
        ]),
      )}\n`,
  )
  return {
    name: 'profile-node',
    redis: backends.redis.kind,
    result: {
      options: { request: 'read', connections, seconds },
      requests,
      cpuMicros,
      busyMicros,
      owners,
    },
    cpuProfile,
  }
}

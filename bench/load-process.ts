/** One process of a load that several processes send. */
import { drive } from './load.ts'
import type { LoadAnswer, LoadJob } from './load-processes.ts'
import { offer } from './open-load.ts'

process.on('message', async (job: LoadJob) => {
  const answer = await answerTo(job)
  // The parent may have ended, so errors are ignored.
  process.send?.(answer, undefined, undefined, () => {})
})
process.on('disconnect', () => process.exit())
// The parent ends this process; Ctrl-C reaches the whole group.
process.on('SIGINT', () => {})

async function answerTo(job: LoadJob): Promise<LoadAnswer> {
  try {
    if (job.kind === 'drive') {
      const { latencies, ...driven } = await drive(job.load)
      return { driven, latencies: latencies.counts() }
    }
    const { latencies, lateness, ...offered } = await offer(job.load)
    return { offered, latencies: latencies.counts(), lateness: lateness.counts() }
  } catch (error) {
    return { error: (error as Error).message }
  }
}

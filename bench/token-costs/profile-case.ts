/** `--profile --case <id>`: where a case of `tokens` spends the time of its isolate. */
import type { Bench } from '../bench.ts'
import { type Profile, sample } from '../profile.ts'
import { type CaseId, loadOf } from './cases.ts'
import { startTokens } from './token-workerd.ts'

/** Prints a summary. Throws for a wrong answer. */
export async function profileCase(bench: Bench, id: CaseId): Promise<Profile> {
  const { workerd, bundle, cases } = await startTokens(bench, true)
  const { pid, inspector } = workerd
  const profiled = cases.find((each) => each.id === id)
  if (profiled === undefined || inspector === undefined)
    throw new Error('there is nothing to profile')
  const { title, service } = profiled
  const { connections, seconds } = bench.options
  const load = { ...loadOf(profiled, workerd), connections }
  const name = `profile-${id}`
  const of = { name, title, bundle, pid, inspector, service, load }
  const { result, cpuProfile } = await sample(bench, of)
  await workerd.close()
  return { name, result: { options: { case: id, connections, seconds }, ...result }, cpuProfile }
}

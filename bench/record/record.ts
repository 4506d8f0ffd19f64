/** Performs a recorded run, from the start of its system to the verdict. */
import { mkdtempSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import type { HistoryEvent } from '../chaos/history.ts'
import { commandLine, type RunContext } from '../main.ts'
import { rounded } from '../measure/statistics.ts'
import { surroundings } from '../surroundings.ts'
import { BURST_SUBJECTS, burst, overloadFigures } from './bursts.ts'
import { check, violationsOf } from './check.ts'
import { condemn } from './condemned.ts'
import { refresh } from './families.ts'
import { isOfRedis, planFaults } from './faults.ts'
import { inject } from './inject.ts'
import { CALLERS, createWallet, offerLoad } from './load.ts'
import type { RecordOptions } from './options.ts'
import { createRecorder, witness, witnessed } from './recorder.ts'
import { type RecordResult, resultOf } from './result.ts'
import { startSystem } from './system.ts'
import { TERMS } from './terms.ts'

export interface Recorded {
  readonly result: RecordResult
  readonly events: readonly HistoryEvent[]
}

/** Performs the run. Throws an `Error` of one line if a process does not start. */
export async function record(
  options: RecordOptions,
  { argv, shutdown, progress }: RunContext,
): Promise<Recorded> {
  const { seconds, windowSeconds, burstSeconds, revocations: perSecond, seed } = options
  const directory = mkdtempSync(join(tmpdir(), 'portcullis-record-'))
  shutdown.defer(async () => rmSync(directory, { recursive: true, force: true }))
  progress('starting')
  const system = await startSystem(options, directory, shutdown)
  const { dependencies } = system
  const about = surroundings(argv, dependencies?.redisKind ?? 'cluster')
  const recorder = await createRecorder(system)
  shutdown.defer(async () => recorder.close())
  const subjects = [...BURST_SUBJECTS, ...CALLERS.map(({ subject }) => subject)]
  const wallet = await createWallet(recorder, subjects)

  const { signal } = shutdown
  const over = new AbortController()
  const ending = AbortSignal.any([signal, over.signal])
  const faults = options.faults.filter((name) => dependencies?.canKillRedis || !isOfRedis(name))
  const plan = planFaults({ seconds, windowSeconds, faults, seed })

  async function perform(): Promise<void> {
    progress(`bursts and overload for ${burstSeconds} s`)
    await burst(recorder, wallet, { seconds: burstSeconds, seed, signal })
    await Promise.all([
      offerLoad(recorder, wallet, { callers: CALLERS, seed, signal: ending }),
      condemn(recorder, wallet, { perSecond, seed, signal: ending }),
      refresh(recorder, { perSecond: perSecond / 5, seed, signal: ending }),
      inject(system, { plan, seed, signal, progress }).finally(() => over.abort()),
    ])
    // The last requests are sent after the load has ended.
    await recorder.settled()
  }
  await witnessed((settled) => witness(system, AbortSignal.any([signal, settled])), perform)
  shutdown.signal.throwIfAborted()

  progress(`checking ${system.events.length} events`)
  const verdict = check(system.events, TERMS)
  const result = resultOf({
    about,
    loadAverageAfter: loadavg().map((load) => rounded(load, 2)),
    command: commandLine('npm run record', argv),
    options,
    faults,
    verdict,
    violations: violationsOf(verdict),
    overload: overloadFigures(system.events),
    faultSeconds: plan.reduce(
      (sum, { startSeconds, endSeconds }) => sum + endSeconds - startSeconds,
      0,
    ),
  })
  return { result, events: system.events }
}

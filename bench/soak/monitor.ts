/** Runs during the load: samples memory, revokes tokens, reports progress. */

import type { Ledger } from '../chaos/ledger.ts'
import type { Condemned } from './condemned.ts'
import type { Operator } from './operator.ts'
import type { Series } from './series.ts'
import type { System } from './system.ts'

const MEMORY_MS = 5_000
/**
 * Each sample collects garbage, which stops a process on Node for 50 to 150 ms. More samples than a linear
 * fit needs would decide the p99: one each 10 s delayed 1 % of the requests.
 */
const HEAP_MS = 15_000
const PROGRESS_MS = 5_000
const CONDEMN_MS = 1_000
/** Far shorter than the life of an operator's token. */
const LOGIN_MS = 120_000

export interface MonitorOptions {
  readonly system: System
  readonly ledger: Ledger
  readonly series: Series
  readonly condemned: Condemned
  readonly operator: Operator
  readonly startMs: number
  readonly progress: (what: string) => void
  fault(): string
}

/** `megabytes` is null if the gateway was down. Later samples are from another process. */
export type Sampled = readonly [seconds: number, megabytes: number | null, answered: number]

/** Resident memory of the process, and heap of the isolate. */
export interface GatewayMemory {
  readonly resident: readonly Sampled[]
  readonly heap: readonly Sampled[]
}

export function createMonitor(options: MonitorOptions) {
  const { system, ledger, series, condemned, operator, startMs, progress, fault } = options
  const memory = system.gateways.map(() => ({ resident: [] as Sampled[], heap: [] as Sampled[] }))
  const lives = system.gateways.map((gateway) => gateway.lives())
  const seconds = () => Math.round((Date.now() - startMs) / 1_000)

  function sampleMemory(): void {
    for (const [index, gateway] of system.gateways.entries())
      memory[index]?.resident.push([
        seconds(),
        gateway.memoryMb() ?? null,
        ledger.answeredBy(index),
      ])
  }

  async function sampleHeap(): Promise<void> {
    for (const [index, gateway] of system.gateways.entries()) {
      const megabytes = await gateway.heapMb()
      const samples = memory[index]?.heap
      if (gateway.lives() !== lives[index])
        samples?.push([seconds(), null, ledger.answeredBy(index)])
      lives[index] = gateway.lives()
      // The gateway is busy or down. A later sample continues the series.
      if (megabytes !== undefined) samples?.push([seconds(), megabytes, ledger.answeredBy(index)])
    }
  }

  const latest = (of: keyof GatewayMemory) =>
    memory.map((samples) => Math.round(samples[of].at(-1)?.[1] ?? 0)).join('+')

  function report(): void {
    const lately = series.seconds(PROGRESS_MS / 1_000 + 1).slice(0, -1)
    const sum = (of: 'answers' | 'ok' | 'refused' | 'failed' | 'none') =>
      lately.reduce((total, figures) => total + figures[of], 0)
    const { counts } = ledger.findings()
    const worst = Math.max(0, ...lately.map(({ p99Ms }) => p99Ms ?? 0))
    const wrong = counts.wrongAccepts + counts.wrongRefusals + counts.repeats
    progress(
      [
        `${String(seconds()).padStart(4)} s`,
        fault().padEnd(14),
        `${Math.round(sum('answers') / Math.max(1, lately.length))}/s`,
        `p99 ${worst} ms`,
        `2xx ${sum('ok')} 4xx ${sum('refused')} 5xx ${sum('failed')} none ${sum('none')}`,
        `unexplained ${counts.unexplained} wrong ${wrong}`,
        `in flight ${ledger.inFlight()} ended ${condemned.size()}`,
        `heap ${latest('heap')} MB, resident ${latest('resident')} MB`,
      ].join('  '),
    )
  }

  const timers = [
    setInterval(sampleMemory, MEMORY_MS),
    setInterval(() => void sampleHeap(), HEAP_MS),
    setInterval(report, PROGRESS_MS),
    setInterval(() => void condemned.condemn(), CONDEMN_MS),
    setInterval(() => void operator.login(), LOGIN_MS),
  ]
  return {
    memory: (): readonly GatewayMemory[] => memory,
    stop() {
      for (const timer of timers) clearInterval(timer)
      timers.length = 0
    },
  }
}

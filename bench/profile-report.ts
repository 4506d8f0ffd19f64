/** Formats the tables of a profile. */
import type { StageTime } from './profile-stages.ts'
import type { ProfileSummary } from './profile-summary.ts'
import { table } from './report.ts'

const SHOWN_FUNCTIONS = 40
const SHOWN_MODULES = 30

/** A profile with its results. */
export interface ReportedProfile {
  readonly title: string
  readonly requests: number
  /** CPU time of the process per request. */
  readonly cpuMicros: number
  readonly stages: readonly StageTime[]
  readonly summary: ProfileSummary
}

/** Returns tables of stages, modules and functions, with microseconds per request. */
export function profileTables(profile: ReportedProfile): string {
  const { title, requests, cpuMicros, stages, summary } = profile
  const { busyMicros, modules, functions } = summary
  return [
    `${title} under workerd serve, ${requests} requests: its isolate's thread was busy for`,
    `${busyMicros.toFixed(0)} us of each by the clock, and the process took ${cpuMicros.toFixed(0)} us of CPU, profiler included.`,
    'Sampled: small figures are rough. Where the two differ much, threads waited for a core.',
    '',
    table(
      ['stage', 'us', 'platform us', 'by module us', '%'],
      stages
        .filter(({ micros }) => micros > 0)
        .map(({ stage, micros, platformMicros, byModuleMicros, share }) => [
          stage,
          micros.toFixed(1),
          platformMicros.toFixed(1),
          byModuleMicros.toFixed(1),
          percent(share),
        ]),
    ),
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

function percent(share: number): string {
  return (share * 100).toFixed(1)
}

/** The versions of the policy that isolates use, for runtimes where a policy can change. */
import type { Metric } from '../../observability/metrics/catalogue.ts'
import type { OwnGauges } from '../../observability/metrics/exposition.ts'

export interface PolicyVersion {
  /** SHA-256 of its files, in hexadecimal digits. */
  readonly digest: string
  /** When the isolate began to use it, in seconds since the epoch. */
  readonly loadedSeconds: number
}

const ISOLATES = 'portcullis_policy_isolates'
const LOADED = 'portcullis_policy_loaded_timestamp_seconds'

const POLICY_METRICS: Readonly<Record<string, Metric>> = {
  [ISOLATES]: {
    kind: 'gauge',
    labels: ['digest'],
    help:
      'Isolates that reported in the last 35 s, by the SHA-256 of the policy that they use. Only of ' +
      '`portcullis serve`. After a reload, the old policy stays for 35 s.',
  },
  [LOADED]: {
    kind: 'gauge',
    labels: ['digest'],
    help: 'When the last of these isolates began to use the policy.',
  },
}

const NAME = /^policy:([^:]+):(\d+)$/

/** Returns the gauges of an isolate. Undefined version: it reports none of its own, and shows those of others. */
export const policyGauges = (version: PolicyVersion | undefined): OwnGauges => ({
  metrics: POLICY_METRICS,
  reported: version === undefined ? [] : [`policy:${version.digest}:${version.loadedSeconds}`],
  samplesOf,
})

/** `reported` has the number of isolates that reported each name. Other names are those of dependencies. */
function* samplesOf(reported: ReadonlyMap<string, number>) {
  const versions = new Map<string, { isolates: number; loadedSeconds: number }>()
  for (const [name, count] of reported) {
    const [, digest, loaded] = NAME.exec(name) ?? []
    if (digest === undefined) continue
    const { isolates, loadedSeconds } = versions.get(digest) ?? { isolates: 0, loadedSeconds: 0 }
    versions.set(digest, {
      isolates: isolates + count,
      loadedSeconds: Math.max(loadedSeconds, Number(loaded)),
    })
  }
  for (const [digest, { isolates, loadedSeconds }] of versions) {
    yield { metric: ISOLATES, labels: [digest], value: isolates }
    yield { metric: LOADED, labels: [digest], value: loadedSeconds }
  }
}

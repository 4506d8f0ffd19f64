/** The version of the policy in the metrics. */
import { expect, test } from 'vitest'
import { exposition } from '../../../src/observability/metrics/exposition.ts'
import { policyGauges } from '../../../src/runtimes/node/policy-version.ts'

const OLD = 'a'.repeat(64)
const NEW = 'b'.repeat(64)

const nameOf = (digest: string, loadedSeconds: number) =>
  policyGauges({ digest, loadedSeconds }).reported.join()

test('each policy in use has the number of its isolates, and when the last one began to use it', () => {
  const text = exposition(
    {
      counts: new Map(),
      isolates: 3,
      open: new Map([
        ['redis', 1],
        [nameOf(OLD, 1_000), 1],
        [nameOf(NEW, 2_000), 1],
        [nameOf(NEW, 2_001), 1],
      ]),
      lastReportMs: undefined,
      bans: 0,
      overflowEvents: 0,
    },
    undefined,
    {},
    policyGauges(undefined),
  )
  expect(text.split('\n').filter((line) => line.startsWith('portcullis_policy_'))).toEqual([
    `portcullis_policy_isolates{digest="${OLD}"} 1`,
    `portcullis_policy_isolates{digest="${NEW}"} 2`,
    `portcullis_policy_loaded_timestamp_seconds{digest="${OLD}"} 1000`,
    `portcullis_policy_loaded_timestamp_seconds{digest="${NEW}"} 2001`,
  ])
  expect(text).toContain('portcullis_breaker_open_isolates{dependency="redis"} 1')
})

/** A short run of `npm run fuzz:transport`; the whole one has 10,000 requests, `npm run test:long` 300. */
import { expect, test } from 'vitest'
import { fuzz } from '../../fuzz/fuzz.ts'
import { usualOrLong } from '../../harness/long.ts'

// On a busy machine, bodies of megabytes can reach the timeouts of the run in workerd.
const OPTIONS = {
  requests: usualOrLong(60, 300),
  minutes: 2,
  lanes: 32,
  seed: 20_261_126,
} as const

test.each(['node', 'workerd'] as const)(
  'on %s, clients and origins that break off end no process, leave nothing over, and disturb no other request [R40, R41]',
  async (runtime) => {
    const { cases, controls, wrong } = await fuzz({
      ...OPTIONS,
      runtime,
      ...(runtime === 'workerd' && { largeBytes: 200_000 }),
    })
    expect(wrong).toEqual([])
    expect(cases).toBe(OPTIONS.requests)
    expect(controls).toBeGreaterThan(0)
  },
  150_000,
)

/** The clock is set back while streams are open. */
import { expect, onTestFinished, test } from 'vitest'
import type { Principal } from '../../src/access/principal.ts'
import { createOpenStreams } from '../../src/streams/open-streams.ts'

const DAY_MS = 86_400_000

test.each([
  ['one timer for all streams', true],
  ['a timer for each stream', false],
])('a clock that is set back delays neither a check nor an expiry: %s', async (_, isShared) => {
  let backMs = 0
  const refused = new Set<string>()
  const streams = createOpenStreams({
    now: () => Date.now() - backMs,
    recheck: async (callers) =>
      callers.map(({ principal: { subject } }) =>
        refused.has(subject) ? { code: 'token_rejected', check: 'revoked' } : undefined,
      ),
    isShared,
  })
  const ended: string[] = []
  function open(subject: string, recheckMs: number, expiresAtSeconds: number) {
    const stream = streams.add({
      principal: { subject, expiresAtSeconds } as Principal,
      address: '192.0.2.1',
      terms: { recheckMs, graceMs: 300, finishes: false },
      onEnd: () => void ended.push(subject),
    })
    stream.opened({ cut() {} })
    onTestFinished(() => stream.closed())
  }
  const soon = () => Math.floor((Date.now() - backMs) / 1_000) + 2
  open('revoked before', 200, Number.MAX_SAFE_INTEGER)
  open('expires before', 0, soon())
  open('stays', 200, Number.MAX_SAFE_INTEGER)
  backMs = DAY_MS
  open('revoked after', 200, Number.MAX_SAFE_INTEGER)
  open('expires after', 0, soon())
  refused.add('revoked before').add('revoked after')
  const expected = ['expires after', 'expires before', 'revoked after', 'revoked before']
  await expect.poll(() => ended.toSorted(), { timeout: 20_000 }).toEqual(expected)
})

/** A key of the audit trail that expires while its consumer runs. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { parseSigningKeys } from '../../src/access/tokens/signing-keys.ts'
import { createCheckpointSealer } from '../../src/audit/chain.ts'
import { Unavailable } from '../../src/errors.ts'
import { createKey } from '../harness/issuer.ts'

const NOW_MS = Date.UTC(2030, 0, 1)
const DAY_MS = 86_400_000
const place = { seq: 7, hash: 'h' }

let lines: string[]
beforeEach(() => {
  lines = []
  for (const level of ['error', 'warn'] as const)
    vi.spyOn(console, level).mockImplementation((line) => void lines.push(String(line)))
})
afterEach(() => vi.restoreAllMocks())

test('is named in the log before and after, and never leaves a checkpoint unsigned in silence', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: NOW_MS })
  const { privateJwk } = await createKey('audit')
  const keys = parseSigningKeys({ keys: [{ ...privateJwk, exp: (NOW_MS + 8 * DAY_MS) / 1000 }] })
  vi.useRealTimers()
  const seal = createCheckpointSealer(keys)
  const incidents = () => lines.map((line) => JSON.parse(line).incident)
  expect((await seal('sealed', place, NOW_MS)).signature).not.toBeNull()
  expect(incidents()).toEqual([])
  expect((await seal('sealed', place, NOW_MS + 2 * DAY_MS)).signature).not.toBeNull()
  expect(incidents()).toEqual(['signing_key_expires'])
  await expect(seal('sealed', place, NOW_MS + 9 * DAY_MS)).rejects.toThrow(Unavailable)
  expect(incidents()).toEqual(['signing_key_expires', 'no_signing_key'])
  for (const line of lines) expect(line).toContain('"variable":"AUDIT_SIGNING_KEYS"')
})

test('without keys, a checkpoint is unsigned, which no log repeats', async () => {
  expect((await createCheckpointSealer([])('sealed', place, NOW_MS)).signature).toBeNull()
  expect(lines).toEqual([])
})

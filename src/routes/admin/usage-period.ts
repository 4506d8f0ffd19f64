/** The period that usage is computed for, as a query names it. */

import * as z from 'zod/mini'
import type { UsagePeriod } from '../../audit/usage.ts'
import { describe } from '../../validators/checks.ts'
import { inputRefused } from './input.ts'

/** 30 days. */
const DEFAULT_USAGE_MS = 30 * 86_400_000

/** The members of a query that name the period of usage. */
export const period = {
  since: z
    .optional(z.iso.datetime({ offset: true }))
    .check(describe('inclusive; default: 30 days before `until`')),
  until: z.optional(z.iso.datetime({ offset: true })).check(describe('exclusive; default: now')),
}

/** Throws `Denied` (`invalid_input`) if the period is empty. */
export function resolvePeriod(
  { since, until }: { readonly since?: string | undefined; readonly until?: string | undefined },
  nowMs: number,
): UsagePeriod {
  const untilMs = until === undefined ? nowMs : Date.parse(until)
  const sinceMs = since === undefined ? untilMs - DEFAULT_USAGE_MS : Date.parse(since)
  if (sinceMs >= untilMs)
    throw inputRefused('query', '/since', 'must be earlier than the end of the period')
  return { sinceMs, untilMs }
}

export const timesOf = ({ sinceMs, untilMs }: UsagePeriod) => ({
  since: new Date(sinceMs).toISOString(),
  until: new Date(untilMs).toISOString(),
})

/** Returns the refusal of a period with too many results. */
export const tooMuch = () =>
  inputRefused('query', '/since', 'must be later: the period has too many results')

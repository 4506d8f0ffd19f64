/** Checks that each refresh token has one successor, and that no token is accepted after its family has ended. Pure. */
import type { History, LossEvent, RefreshEvent } from '../chaos/history.ts'
import type { Terms } from './terms.ts'

export type Families = ReturnType<typeof checkFamilies>

/** Replication takes less. A login is not acknowledged by replicas: its family may be lost with its master. */
const REPLICATED_MS = 1_000
const ANSWERED: readonly number[] = [200, 400]

/** Checks the families. Every use happened between its start and its response, or later without a response. */
export function checkFamilies({ refreshes, losses }: History, { graceMs }: Terms) {
  const families = Map.groupBy(refreshes, ({ family }) => family)
  const answered = (purposes: readonly RefreshEvent['purpose'][], status: number) =>
    refreshes.filter((each) => purposes.includes(each.purpose) && each.status === status).length
  return {
    families: families.size,
    /** Responses with a successor. */
    rotated: answered(['use', 'replay'], 200),
    /** Refusals of a token whose successor was used. */
    replayed: answered(['replay'], 400),
    ended: answered(['end'], 200),
    violations: [...families.values()].flatMap((events) => violationsIn(events, losses, graceMs)),
  }
}

function violationsIn(
  events: readonly RefreshEvent[],
  losses: readonly LossEvent[],
  graceMs: number,
): readonly string[] {
  const uses = events.filter(({ purpose }) => purpose === 'use' || purpose === 'replay')
  const isOver = ({ purpose, status }: RefreshEvent) =>
    purpose === 'end' ? status === 200 : status === 400
  const overMs = Math.min(
    ...events.flatMap((each) => (isOver(each) ? each.completeMs : [])),
    Number.POSITIVE_INFINITY,
  )
  /** When a token has been used: its successor was then the current token. */
  const usedMs = new Map<string, number>()
  const successors = new Map<string, Set<string>>()
  for (const { token, successor, status, completeMs } of uses) {
    if (status !== 200) continue
    usedMs.set(token, Math.min(completeMs, usedMs.get(token) ?? completeMs))
    successors.set(token, (successors.get(token) ?? new Set()).add(successor))
  }
  const usedAt = (token: string) => usedMs.get(token) ?? Number.POSITIVE_INFINITY
  const mayBeLost = events.some(
    ({ purpose, invokeMs, completeMs }) =>
      purpose === 'open' &&
      losses.some(
        ({ only, fromMs, untilMs }) =>
          invokeMs < untilMs && (only === undefined || completeMs > fromMs - REPLICATED_MS),
      ),
  )

  /** Whether the client, or a use without a response that took effect late, may have ended the family. */
  const isCaused = ({ token, completeMs }: RefreshEvent) =>
    events.some((other) => {
      if (other.invokeMs > completeMs || other.purpose === 'open') return false
      if (other.purpose !== 'use') return true
      if (other.token === token) return completeMs - other.invokeMs > graceMs
      return !ANSWERED.includes(other.status)
    })

  function mistakeIn(use: RefreshEvent): string | undefined {
    const { token, successor, invokeMs, status, code, purpose } = use
    if (status === 200) {
      if ((successors.get(token)?.size ?? 0) > 1) return 'a token with two successors'
      if (invokeMs > overMs) return 'accepted after the end of its family'
      if (invokeMs > usedAt(successor)) return 'accepted after its successor was used'
      return invokeMs > usedAt(token) + graceMs ? 'accepted after its grace period' : undefined
    }
    if (status === 0 || status === 503) return undefined
    if (status !== 400 || code !== 'invalid_grant') return 'unexpected response'
    return purpose === 'replay' || mayBeLost || isCaused(use) ? undefined : 'ended without a cause'
  }

  return uses.flatMap((use) => {
    const mistake = mistakeIn(use)
    const { family, process, purpose, status, code } = use
    return mistake === undefined
      ? []
      : [`${purpose} in ${family} at process ${process}: ${status} ${code}: ${mistake}`]
  })
}

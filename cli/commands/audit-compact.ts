/** Audit events in the width of a terminal: one line each. */
import { type CommandEvent, groupCommands } from '../../src/audit/command-events.ts'
import { cut, shortTime } from '../compact.ts'
import type { Output } from '../output.ts'
import type { TrailEvent } from '../tail.ts'
import { line, type Style, visible } from '../text.ts'

interface ShownEvent {
  readonly time: string
  readonly requestId?: string
  readonly method?: string
  readonly route?: string | null
  readonly status?: number
  readonly decision?: string
  readonly reason?: string
  readonly observed?: readonly string[]
  readonly actor?: { readonly subject?: string | null; readonly client: string | null }
  readonly call?: { readonly method: string; readonly name?: string }
  readonly change?: { readonly action: string; readonly target: string }
}

const COLUMNS = ['time', 'status', 'method', 'route', 'caller', 'reason'] as const
const ID_COLUMNS = ['time', 'status', 'method', 'route', 'caller', 'requestId', 'reason'] as const
/** From this width on, the request id has room. */
const ID_WIDTH = 118
/** Of rows that are printed one at a time. The reason gets the rest of the line. */
const WIDTHS = { time: 8, status: 3, method: 6, route: 20, caller: 14, requestId: 36 } as const
const GAP_WIDTH = 2

/** Whether a terminal shows the events, in fewer columns. */
export const isCompact = (
  { json = false, wide = false }: { readonly json?: boolean; readonly wide?: boolean },
  { style }: Pick<Output, 'style'>,
): boolean => !json && !wide && Number.isFinite(style.width)

export const compactColumns = ({ width }: Style): readonly string[] =>
  width >= ID_WIDTH ? ID_COLUMNS : COLUMNS

/**
 * Returns the rows of events. A command of an operator is one row, which counts its further events, unless a route is selected.
 */
export function compactEvents(
  events: readonly TrailEvent[],
  { route }: { readonly route?: string } = {},
): readonly Record<string, unknown>[] {
  return grouped(events, route).map(({ event, others }) => compactEvent(event, others))
}

/** Returns the events that are lines, with the number of those that are parts of them. */
export const grouped = (
  events: readonly TrailEvent[],
  route: string | undefined,
): readonly { readonly event: TrailEvent; readonly others: number }[] =>
  route === undefined
    ? groupCommands(events as readonly (TrailEvent & CommandEvent)[])
    : events.map((event) => ({ event, others: 0 }))

/** Returns the members that a terminal shows: the subject, or else the client; what was done, after the reason. */
export function compactEvent(event: object, others = 0): Record<string, unknown> {
  const { time, method, route, status, decision, reason = '', actor, call } = event as ShownEvent
  const { change, observed = [], requestId } = event as ShownEvent
  const done = change === undefined ? [] : [change.action, change.target]
  const watched = observed.length === 0 ? [] : [`(observed: ${observed.join(' ')})`]
  return {
    ...{ time: shortTime(time, Date.now()), status, method, requestId, decision },
    route: [route, call && (call.name ?? call.method)].filter(Boolean).join(' '),
    caller: actor?.subject ?? actor?.client,
    reason: [reason, ...done, ...watched, ...(others > 0 ? [`(+${others})`] : [])].join(' '),
  }
}

/** Formats one event as a line that is as wide as the terminal at most. */
export function compactLine(event: object, style: Style, others = 0): string {
  const row = compactEvent(event, others)
  const columns = compactColumns(style)
  const taken = columns.reduce(
    (sum, name) => sum + (WIDTHS[name as keyof typeof WIDTHS] ?? 0) + GAP_WIDTH,
    0,
  )
  const spare = Math.max(0, style.width - taken - GAP_WIDTH)
  const widths = { ...WIDTHS, reason: Math.max(GAP_WIDTH, spare) }
  const cells = Object.fromEntries(
    columns.map((name) => [name, cutCell(row[name], widths[name as keyof typeof widths])]),
  )
  return line(cells, columns, WIDTHS, style)
}

const cutCell = (value: unknown, width: number): unknown =>
  typeof value === 'string' ? cut(visible(value), width) : value

const OUTCOMES = [
  ['allow', 'allowed'],
  ['deny', 'refused'],
  ['error', 'failed'],
] as const

/** Returns the answer in one line: `8 events: 3 allowed, 5 refused`. */
export function summaryOf(events: readonly object[]): string {
  const counts = OUTCOMES.flatMap(([decision, word]) => {
    const count = events.filter((event) => (event as ShownEvent).decision === decision).length
    return count === 0 ? [] : [`${count} ${word}`]
  })
  return `${events.length} event${events.length === 1 ? '' : 's'}, newest first: ${counts.join(', ')}`
}

/** One line of a terminal for each decision of a gateway. */

import stringWidth from 'string-width'
import { cut } from '../compact.ts'
import { objectIn } from '../json.ts'
import { type Style, visible } from '../text.ts'

/** The members that are shown of an audit event, as a Worker of `npm start` logs it. */
export interface Decision {
  readonly actor: { readonly subject: string | null; readonly client: string | null }
  readonly method: string
  readonly route: string | null
  /** Absent in the log of an app. */
  readonly path?: string
  readonly call?: { readonly method: string; readonly name?: string | undefined } | undefined
  readonly decision: 'allow' | 'deny' | 'error'
  readonly reason: string
  readonly status: number
  readonly durationsMs: Readonly<Record<string, number>>
}

const GAP = '  '
/** Put before a warning by wrangler, which prints nothing of less weight here. */
const WARNING = /^\S+ \[WARNING\] /
const METHOD_WIDTH = 6
const PATH_WIDTH = 30
const REASON_WIDTH = 24
const CALLER_WIDTH = 16
const MS_WIDTH = 7
/** A path is not cut to less on a terminal. */
const LEAST_WIDTH = 12
const COLORS = { allow: 'green', deny: 'red', error: 'yellow' } as const

/** Returns the decision in a line of the log of a Worker. Undefined: the line is something else. */
export function decisionIn(logged: string): Decision | undefined {
  const line = logged.replace(WARNING, '')
  if (!line.startsWith('{"id":"') || !line.includes('"decision":')) return undefined
  const event = objectIn(line) as Partial<Decision> | undefined
  const isEvent = typeof event?.reason === 'string' && typeof event.actor === 'object'
  return isEvent ? (event as Decision) : undefined
}

/**
 * Formats a decision: method, path, status, reason, caller and duration. The line has no control characters, which a
 * client could have sent in its path or as its subject. On a terminal, a long path or reason is cut so that the line fits.
 */
export function decisionLine(event: Decision, { width, colors }: Style): string {
  const { decision, status, actor, durationsMs } = event
  const ms = `${Math.round(sum(Object.values(durationsMs ?? {})))} ms`.padStart(MS_WIDTH)
  const method = padded(visible(event.method || '-'), METHOD_WIDTH)
  const caller = padded(visible(callerOf(actor)), CALLER_WIDTH)
  const others = [method, '403', caller, ms].map(stringWidth)
  const room = width - sum(others) - GAP.length * (others.length + 1)
  const target = targetOf(event)
  const reason = visible(event.reason)
  const reasonRoom = Math.max(LEAST_WIDTH, room - Math.min(stringWidth(target), PATH_WIDTH))
  const shownReason = padded(cut(reason, reasonRoom), Math.min(REASON_WIDTH, reasonRoom))
  const pathRoom = Math.max(LEAST_WIDTH, room - stringWidth(shownReason))
  const path = padded(cut(target, pathRoom), Math.min(PATH_WIDTH, pathRoom))
  const paint = colors[COLORS[decision] ?? 'yellow']
  return [method, path, paint(`${status}`), paint(shownReason), caller, colors.dim(ms)].join(GAP)
}

/** The path, or where it is not known the pattern of the route; and the tool, prompt or resource of a call. */
function targetOf({ path, route, call }: Decision): string {
  const name = call === undefined ? '' : ` ${call.name ?? call.method}`
  return visible(`${path ?? route ?? '-'}${name}`)
}

const callerOf = ({ subject, client }: Decision['actor']): string => subject ?? client ?? '-'

const padded = (text: string, width: number): string =>
  text + ' '.repeat(Math.max(0, width - stringWidth(text)))

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0)

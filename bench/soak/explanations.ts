/** Records when each fault was active, and decides which failures it explains. */
import { explainedBy, type FaultName, type FULL_LOAD, type Trouble } from './faults.ts'

/** The period of a fault, in milliseconds since the epoch. */
export interface FaultWindow {
  readonly name: FaultName | typeof FULL_LOAD
  readonly startMs: number
  /** Undefined while the fault is active. */
  endMs: number | undefined
  /** The gateway that was killed, if any: 0 or 1. */
  readonly gateway?: number
  /** Time of the last response that this fault explains. */
  lastTroubleMs: number | undefined
  troubles: number
}

/** The start, end and gateway of one request. */
export interface Span {
  readonly fromMs: number
  readonly toMs: number
  readonly gateway: number
}

export interface Explanations {
  readonly windows: readonly FaultWindow[]
  begin(name: FaultWindow['name'], nowMs: number, gateway?: number): FaultWindow
  /** Returns the fault that explains this failure of a request, if any. */
  explain(trouble: Trouble, span: Span): FaultWindow | undefined
  /** Reports whether a fault was active, or had just ended, during this span. */
  isTroubled(span: Span): boolean
}

export function createExplanations(): Explanations {
  const windows: FaultWindow[] = []

  function touches({ name, startMs, endMs }: FaultWindow, { fromMs, toMs }: Span): boolean {
    const untilMs =
      endMs === undefined
        ? Number.POSITIVE_INFINITY
        : endMs + explainedBy(name).recoveryMs(endMs - startMs)
    return startMs <= toMs && fromMs <= untilMs
  }

  return {
    windows,
    begin(name, nowMs, gateway) {
      const window: FaultWindow = {
        name,
        startMs: nowMs,
        endMs: undefined,
        ...(gateway !== undefined && { gateway }),
        lastTroubleMs: undefined,
        troubles: 0,
      }
      windows.push(window)
      return window
    },
    explain(trouble, span) {
      const window = windows.findLast(
        (candidate) =>
          touches(candidate, span) &&
          explainedBy(candidate.name).explains.includes(trouble) &&
          (candidate.gateway === undefined || candidate.gateway === span.gateway),
      )
      if (window !== undefined) {
        window.troubles++
        window.lastTroubleMs = Math.max(window.lastTroubleMs ?? 0, span.toMs)
      }
      return window
    },
    isTroubled: (span) => windows.some((window) => touches(window, span)),
  }
}

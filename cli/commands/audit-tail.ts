/** `portcullis audit tail`: prints audit events as they arrive. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Command } from '@commander-js/extra-typings'
import { type CommonOptions, onlineCommand, wide, workWith } from '../command.ts'
import { Failure, UNDECIDED } from '../failure.ts'
import type { Gateway } from '../gateway.ts'
import { createTail, type EventPage, isReadOfTrail, type Tail, type TrailEvent } from '../tail.ts'
import { headingLine, line } from '../text.ts'
import { compactLine, grouped, isCompact } from './audit-compact.ts'
import {
  EVENT_COLUMNS,
  EVENT_WIDTHS,
  type EventFilter,
  filtered,
  filterQuery,
} from './audit-filter.ts'

const POLL_MS = 2_000
const PAGE_EVENTS = 200

interface TailOptions extends CommonOptions, EventFilter {}

export function addTail(audit: Command): void {
  const tail = onlineCommand(audit, {
    name: 'tail',
    does: 'print events as they arrive, until Ctrl-C; with --json one event in a line',
    examples: ['portcullis audit tail --decision deny', 'portcullis audit tail --json --since 5m'],
  })
  tail.addHelpText(
    'after',
    '\nAn event that reaches the trail more than 30 s late is not printed; `audit query` lists it.\n' +
      'Reads of the trail by the same client, such as those of this command, are printed with --route only:\n' +
      '--route /-/admin/audit.',
  )
  wide(filtered(tail)).action(async (options) => {
    const stopped = new AbortController()
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopped.abort())
    try {
      await follow(options, stopped.signal)
    } catch (error) {
      if (!stopped.signal.aborted) throw error
    }
  })
}

async function follow(options: TailOptions, signal: AbortSignal): Promise<void> {
  const { gateway, output, clientId } = workWith(options, signal)
  const isOwn = (event: TrailEvent) => options.route === undefined && isReadOfTrail(event, clientId)
  const compact = isCompact(options, output)
  let tail: Tail | undefined
  let troubled = false
  let hasHeading = false
  for (;;) {
    try {
      tail ??= createTail(await startOf(gateway, options))
      const events = await eventsSince(gateway, options, tail.since())
      if (troubled) process.stderr.write('portcullis: the gateway responds again\n')
      troubled = false
      if (!hasHeading && !compact) output.remark(headingLine(EVENT_COLUMNS, EVENT_WIDTHS))
      hasHeading = true
      const fresh = tail.unseen(events).filter((event) => !isOwn(event))
      if (compact)
        for (const { event, others } of grouped(fresh, options.route))
          output.result(event, compactLine(event, output.style, others))
      else
        for (const event of fresh)
          output.result(event, line(event, EVENT_COLUMNS, EVENT_WIDTHS, output.style))
    } catch (error) {
      if (signal.aborted || !passes(error)) throw error
      if (!troubled) process.stderr.write(`portcullis: ${error.code}, trying again\n`)
      troubled = true
    }
    await pause(POLL_MS, undefined, { signal })
  }
}

/**
 * Returns the time to start from, in milliseconds since the epoch: `--since`, or just after the
 * newest event. Uses the gateway's clock, because the clock of this machine may be wrong.
 */
async function startOf(gateway: Gateway, options: TailOptions): Promise<number> {
  if (options.since !== undefined) return Date.parse(options.since)
  const query = { ...filterQuery(options), limit: 1 }
  const { events, cursor } = await gateway.get<EventPage>('/audit', query)
  const [newest] = events
  if (newest !== undefined) return Date.parse(newest.time) + 1
  // The newest events, as many as one query reads, do not match.
  if (cursor !== undefined) return Number.parseInt(cursor, 10)
  return 0
}

/** Reports whether a failure is temporary. Any other failure would repeat on the next call. */
function passes(error: unknown): error is Failure {
  return error instanceof Failure && (error.exitCode === UNDECIDED || error.code === 'rate_limited')
}

/** Fetches all pages, because a burst of events can be larger than one page. */
async function eventsSince(
  gateway: Gateway,
  options: TailOptions,
  since: string,
): Promise<readonly TrailEvent[]> {
  const events: TrailEvent[] = []
  let cursor: string | undefined
  do {
    const query = { ...filterQuery(options), since, limit: PAGE_EVENTS, cursor }
    const page = await gateway.get<EventPage>('/audit', query)
    events.push(...page.events)
    cursor = page.cursor
  } while (cursor !== undefined)
  return events
}

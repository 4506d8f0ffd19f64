/** `portcullis audit`: queries, follows, verifies and erases audit events. */
import type { Command } from '@commander-js/extra-typings'
import { instant } from '../arguments.ts'
import { onlineCommand, paged, pageQuery, workWith } from '../command.ts'
import type { Gateway } from '../gateway.ts'
import type { Output } from '../output.ts'
import type { EventPage } from '../tail.ts'
import { compactColumns, compactEvents, isCompact, summaryOf } from './audit-compact.ts'
import { addErase } from './audit-erase.ts'
import { EVENT_COLUMNS, filtered, filterQuery } from './audit-filter.ts'
import { addTail } from './audit-tail.ts'
import { addVerify } from './audit-verify.ts'

const LATENESS = 'An event is listed a second or two after its request.'

export function addAuditCommands(program: Command): void {
  const audit = program.command('audit').description('decisions and changes in the audit trail')
  const query = onlineCommand(audit, {
    name: 'query',
    does: 'list events of the audit trail, newest first',
    examples: [
      'portcullis audit query --subject alice --decision deny --since 1h',
      'portcullis audit query --reason rate_limited --json',
      'portcullis audit query --request-id 0193b0a4-7c1e-7d3a-9b1c-2f6e8d4a5b6c',
    ],
  })
  paged(filtered(query))
    .option('--request-id <id>', 'the X-Request-Id of a response')
    .option('--until <time>', 'end, in the same form', instant)
    .action(async (options) => {
      const { gateway, output } = workWith(options)
      const query = {
        ...filterQuery(options),
        requestId: options.requestId,
        until: options.until,
        ...pageQuery(options),
      }
      const page = await wholePage(gateway, query, output)
      if (page.events.length > 0 && isCompact(options, output)) {
        const rows = compactEvents(page.events, options)
        const table = output.fitted(rows, compactColumns(output.style))
        output.result(page, `${summaryOf(page.events)}\n${table}`)
        const parts = page.events.length - rows.length
        if (parts > 0)
          output.remark(`${parts} more events are parts of these commands. --wide lists each.`)
        if (page.cursor !== undefined) output.remark(`More entries: --cursor ${page.cursor}`)
      } else output.list(page, page.events, EVENT_COLUMNS, 'matching events', LATENESS)
      for (const event of page.events) {
        const found = rejectionIn(event)
        if (found !== undefined) output.remark(found)
      }
    })
  addTail(audit)
  addVerify(audit)
  addErase(audit)
}

const DEFAULT_LIMIT = 50
/** A query reads a bounded part of the trail, so a page may be shorter than its limit. */
const MAX_PAGES = 250
/** A remark after so many pages says how far the search is. */
const PAGES_PER_REMARK = 10

/** Returns as many events as the limit permits, or those of the first 250 pages, with a cursor. */
async function wholePage(
  gateway: Pick<Gateway, 'get'>,
  query: NonNullable<Parameters<Gateway['get']>[1]>,
  output: Pick<Output, 'remark'>,
): Promise<EventPage> {
  const wanted = Number(query.limit ?? DEFAULT_LIMIT)
  const page = await gateway.get<EventPage>('/audit', query)
  const events = [...page.events]
  let { cursor } = page
  for (let pages = 1; pages < MAX_PAGES; pages += 1) {
    if (cursor === undefined || !(events.length < wanted)) break
    if (pages % PAGES_PER_REMARK === 0) {
      const time = new Date(Number.parseInt(cursor, 10)).toISOString()
      output.remark(`${events.length} matching events so far. Searching before ${time} ...`)
    }
    const limit = String(wanted - events.length)
    const next = await gateway.get<EventPage>('/audit', { ...query, limit, cursor })
    events.push(...next.events)
    cursor = next.cursor
  }
  return { events, ...(cursor !== undefined && { cursor }) }
}

/** Describes what the check of a refused token found and expected. */
function rejectionIn(event: object): string | undefined {
  const { requestId, reason, rejected } = event as Partial<RejectedEvent>
  if (rejected === undefined) return undefined
  const { seen, expected, verified } = rejected
  return `${requestId} ${reason}: seen ${seen}${verified ? '' : ' (not verified)'}, expected ${expected}`
}

interface RejectedEvent {
  readonly requestId: string
  readonly reason: string
  readonly rejected: {
    readonly seen: string
    readonly expected: string
    readonly verified: boolean
  }
}

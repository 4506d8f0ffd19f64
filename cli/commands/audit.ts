/** `portcullis audit`: queries, follows, verifies and erases audit events. */
import type { Command } from 'commander'
import { instant } from '../arguments.ts'
import {
  type CommonOptions,
  onlineCommand,
  type PageOptions,
  paged,
  pageQuery,
  workWith,
} from '../command.ts'
import type { EventPage } from '../tail.ts'
import { addErase } from './audit-erase.ts'
import { EVENT_COLUMNS, type EventFilter, filtered, filterQuery } from './audit-filter.ts'
import { addTail } from './audit-tail.ts'
import { addVerify } from './audit-verify.ts'

interface QueryOptions extends CommonOptions, PageOptions, EventFilter {
  readonly requestId?: string
  readonly until?: string
}

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
    .action(async (options: QueryOptions) => {
      const { gateway, output } = workWith(options)
      const page = await gateway.get<EventPage>('/audit', {
        ...filterQuery(options),
        requestId: options.requestId,
        until: options.until,
        ...pageQuery(options),
      })
      output.list(page, page.events, EVENT_COLUMNS, 'matching events', LATENESS)
      for (const event of page.events) {
        const found = rejectionIn(event)
        if (found !== undefined) output.remark(found)
      }
    })
  addTail(audit)
  addVerify(audit)
  addErase(audit)
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

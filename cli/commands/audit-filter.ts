/** Filter options and table columns of the audit trail commands. */
import { type Command, Option, type OptionValues } from '@commander-js/extra-typings'
import { instant, keyId } from '../arguments.ts'

const DECISIONS = ['allow', 'deny', 'error']

/** The filters that `query` and `tail` share. */
const FILTERS = [
  ...(['subject', 'client', 'tenant', 'address', 'decision', 'status', 'tool', 'change'] as const),
  ...(['route', 'host', 'origin', 'key', 'reason', 'observed', 'since'] as const),
]
export type EventFilter = Readonly<Partial<Record<(typeof FILTERS)[number], string>>>

/** Members of an event that the table shows. `--json` prints all of them. */
export const EVENT_COLUMNS = [
  'time',
  'decision',
  'status',
  'method',
  'route',
  'actor.subject',
  'reason',
  'observed',
  'requestId',
  'change.action',
  // It can be long: a column after it would be far from the start of the row.
  'change.target',
] as const

/**
 * Minimum width of each column when rows are printed one at a time, in characters. Fits most cells
 * and the heading.
 */
export const EVENT_WIDTHS = {
  time: 24,
  decision: 8,
  status: 6,
  method: 7,
  route: 24,
  'actor.subject': 36,
  reason: 24,
  observed: 8,
  requestId: 36,
  'change.action': 17,
} as const satisfies Partial<Record<(typeof EVENT_COLUMNS)[number], number>>

export const filtered = <A extends unknown[], O extends OptionValues>(command: Command<A, O>) =>
  command
    .option('--subject <subject>', 'subject of the caller')
    .option('--client <id>', 'client of the caller')
    .option('--tenant <tenant>', 'tenant of the caller')
    .option('--address <address>', 'client address; an IPv6 address stands for its /64')
    .addOption(new Option('--decision <decision>', 'decision').choices(DECISIONS))
    .option('--status <status>', 'status of the response, such as 403')
    .option('--tool <name>', 'tool, prompt or resource of a call of an MCP server')
    .option('--change <action>', 'change by an operator, such as ban.create, or ban for all')
    .option('--route <pattern>', 'pattern of the route, such as /orders/:id')
    .option('--host <pattern>', 'host pattern of the route, such as *.example.com')
    .option('--origin <name>', 'name of the origin in the policy')
    .option('--key <id>', 'id of the API key, from `api-keys list`', keyId)
    .option('--reason <reason>', 'reason, such as token_rejected:exp, or the part before the colon')
    .option('--observed <reason>', 'reason of a rule in observe mode, which refused nothing')
    .option('--since <time>', 'start: 2026-11-20T16:00:00Z, 2026-11-20, yesterday, or 15m', instant)

export const filterQuery = (options: EventFilter) =>
  Object.fromEntries(FILTERS.map((name) => [name, options[name]]))

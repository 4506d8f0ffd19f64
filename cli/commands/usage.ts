/** `portcullis usage`: the requests of an API key by day, or of a customer by key and route. */
import type { Command } from '@commander-js/extra-typings'
import { instant, keyId } from '../arguments.ts'
import { onlineCommand, paged, pageQuery, workWith } from '../command.ts'
import { usage as usageMistake } from '../failure.ts'
import { table } from '../text.ts'

const COUNTS = ['requests', 'allowed', 'refused', 'errors'] as const

interface Usage {
  readonly days: readonly ({
    readonly day: string
    readonly reasons: Readonly<Record<string, number>>
  } & Readonly<Record<(typeof COUNTS)[number], number>>)[]
}

interface CustomerUsage {
  readonly keys: readonly ({
    readonly routes: readonly ({
      readonly method: string
      readonly route: string | null
      readonly host: string | null
    } & Readonly<Record<(typeof COUNTS)[number], number>>)[]
  } & Readonly<Record<(typeof KEY_COLUMNS)[number], string | null>>)[]
  readonly cursor?: string
}

const KEY_COLUMNS = ['id', 'prefix', 'status', 'plan'] as const
const LATENESS = 'A request is counted a second or two after its response.'

export function addUsageCommand(program: Command): void {
  const command = onlineCommand(program, {
    name: 'usage',
    does: 'count the requests of an API key by day (UTC), or of a customer by key and route',
    examples: [
      'portcullis usage --key 7f3c2b1a-9d8e-4f6a-8b5c-1d2e3f4a5b6c --since 30d',
      'portcullis usage --tenant acme --since 2026-11-01T00:00:00Z --until 2026-12-01T00:00:00Z --json',
    ],
  })
  paged(command)
    .option('--key <id>', 'id of the key, from `api-keys list`; it may have ended', keyId)
    .option('--tenant <tenant>', 'the keys of a tenant, also those that have ended')
    .option('--subject <subject>', 'the keys of a subject')
    .option('--reference <reference>', 'the keys whose metadata has this `reference`')
    .option('--since <time>', 'begin: a time, or its age such as 30d (default: 30d)', instant)
    .option('--until <time>', 'end, in the same form (default: now)', instant)
    .action(async (options) => {
      const { since, until, key, tenant, subject, reference } = options
      const customer = { tenant, subject, reference }
      const isCustomer = Object.values(customer).some((value) => value !== undefined)
      if ((key !== undefined) === isCustomer)
        throw usageMistake('use either --key, or --tenant, --subject or --reference; see --help')
      const { gateway, output } = workWith(options)
      if (key === undefined) {
        const query = { ...customer, since, until, ...pageQuery(options) }
        const page = await gateway.get<CustomerUsage>('/usage', query)
        const columns = [...KEY_COLUMNS, 'method', 'route', ...COUNTS]
        return output.list(page, page.keys.flatMap(rowsOf), columns, 'requests')
      }
      const usage = await gateway.get<Usage>(`/api-keys/${key}/usage`, { since, until })
      const { days } = usage
      if (days.length === 0) return output.result(usage, `No requests. ${LATENESS}`)
      const sum = (name: (typeof COUNTS)[number]) =>
        days.reduce((total, { [name]: requests }) => total + requests, 0)
      const total = Object.fromEntries(COUNTS.map((name) => [name, sum(name)]))
      const rows = days.map((day) => ({ ...day, reasons: reasonsIn(day) }))
      const columns = ['day', ...COUNTS, 'reasons']
      output.result(usage, table([...rows, { day: 'total', ...total }], columns, output.style))
    })
}

/** Returns a row for each route of a key; a key without requests has one row. */
function rowsOf({ routes, ...key }: CustomerUsage['keys'][number]): object[] {
  if (routes.length === 0) return [{ ...key, requests: 0 }]
  return routes.map((route) => ({
    ...key,
    ...route,
    route: (route.host ?? '') + (route.route ?? ''),
  }))
}

/** Formats the reasons as one cell, the most frequent first. */
const reasonsIn = ({ reasons }: Pick<Usage['days'][number], 'reasons'>): string =>
  Object.entries(reasons)
    .sort(([, a], [, b]) => b - a)
    .map(([reason, requests]) => `${reason} ${requests}`)
    .join(', ')

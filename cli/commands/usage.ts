/** `portcullis usage`: the requests of an API key by day, from the audit trail. */
import type { Command } from 'commander'
import { instant, keyId } from '../arguments.ts'
import { type CommonOptions, onlineCommand, workWith } from '../command.ts'
import { table } from '../text.ts'

interface UsageOptions extends CommonOptions {
  readonly key: string
  readonly since?: string
  readonly until?: string
}

const COUNTS = ['requests', 'allowed', 'refused', 'errors'] as const

interface Usage {
  readonly days: readonly ({
    readonly day: string
    readonly reasons: Readonly<Record<string, number>>
  } & Readonly<Record<(typeof COUNTS)[number], number>>)[]
}

const LATENESS = 'A request is counted a second or two after its response.'

export function addUsageCommand(program: Command): void {
  onlineCommand(program, {
    name: 'usage',
    does: 'count the requests of an API key by day (UTC), with the reasons of refusals',
    examples: [
      'portcullis usage --key 7f3c2b1a-9d8e-4f6a-8b5c-1d2e3f4a5b6c --since 30d',
      'portcullis usage --key 7f3c2b1a-9d8e-4f6a-8b5c-1d2e3f4a5b6c --since 2026-11-01T00:00:00Z --json',
    ],
  })
    .requiredOption('--key <id>', 'id of the key, from `api-keys list`; it may have ended', keyId)
    .option('--since <time>', 'begin: a time, or its age such as 30d (default: 30d)', instant)
    .option('--until <time>', 'end, in the same form (default: now)', instant)
    .action(async (options: UsageOptions) => {
      const { gateway, output } = workWith(options)
      const { since, until } = options
      const usage = await gateway.get<Usage>(`/api-keys/${options.key}/usage`, { since, until })
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

/** Formats the reasons as one cell, the most frequent first. */
const reasonsIn = ({ reasons }: Pick<Usage['days'][number], 'reasons'>): string =>
  Object.entries(reasons)
    .sort(([, a], [, b]) => b - a)
    .map(([reason, requests]) => `${reason} ${requests}`)
    .join(', ')

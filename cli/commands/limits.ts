/** `portcullis limits`: lists limits, and manages overrides and windows. */
import type { Command } from 'commander'
import { id, seconds, whole } from '../arguments.ts'
import {
  type CommonOptions,
  onlineCommand,
  type PageOptions,
  paged,
  pageQuery,
  workWith,
} from '../command.ts'
import { table, visible } from '../text.ts'

interface WindowOptions extends CommonOptions {
  readonly issuer?: string
}

interface OverrideOptions extends WindowOptions {
  readonly requests: number
  readonly expiresIn?: number
}

interface PolicyLimit {
  /** Units that an isolate leases in advance. */
  readonly lease?: { readonly max: number; readonly ttlMs: number } | null
}

interface LimitPage {
  readonly limits: readonly PolicyLimit[]
  readonly overrides: readonly object[]
  readonly cursor?: string
}

const LIMIT = ['<limit>', 'name of the limit in the policy'] as const
const VALUE = ['<value>', 'subject, client, tenant or address, depending on the limit'] as const
const ISSUER = ['--issuer <issuer>', 'issuer of the value (default: all issuers)'] as const
const LIMIT_COLUMNS = [
  'name',
  'limit',
  'windowSeconds',
  'by',
  'mode',
  'onUnavailable',
  'engine',
  'cost',
  'lease',
]
const OVERRIDE_COLUMNS = ['id', 'limit', 'value', 'issuer', 'requests', 'createdAt', 'expiresAt']

export function addLimitCommands(program: Command): void {
  const limits = program.command('limits').description('limits and their overrides')
  addList(limits)
  onlineCommand(limits, {
    name: 'override',
    does: 'set another number of requests per window for one caller',
    examples: ['portcullis limits override standard alice --requests 1000 --expires-in 7d'],
  })
    .argument(...LIMIT)
    .argument(...VALUE)
    .requiredOption('--requests <count>', 'requests per window', whole)
    .option(
      '--expires-in <time>',
      'lifetime of the override (default: until it is lifted)',
      seconds,
    )
    .option(...ISSUER)
    .action(async (limit: string, value: string, options: OverrideOptions) => {
      const { gateway, output } = workWith(options)
      const answer = await gateway.post<object>('/limits/overrides', {
        limit,
        value,
        issuer: options.issuer,
        requests: options.requests,
        expiresInSeconds: options.expiresIn,
      })
      output.thing(answer)
    })
  onlineCommand(limits, {
    name: 'lift',
    does: "remove an override: the policy's number applies again",
    examples: ['portcullis limits lift 0193b0a4-7c1e-7d3a-9b1c-2f6e8d4a5b6c'],
  })
    .argument('<id>', 'id of the override, from `limits list`', id)
    .action(async (override: string, options: CommonOptions) => {
      const { gateway, output } = workWith(options)
      await gateway.delete(`/limits/overrides/${override}`)
      output.result({}, `Override ${override} is lifted.`)
    })
  onlineCommand(limits, {
    name: 'reset',
    does: 'reset a window: all of its units are available again',
    examples: ['portcullis limits reset standard alice'],
  })
    .argument(...LIMIT)
    .argument(...VALUE)
    .option(...ISSUER)
    .action(async (limit: string, value: string, options: WindowOptions) => {
      const { gateway, output } = workWith(options)
      await gateway.post('/limits/reset', { limit, value, issuer: options.issuer })
      output.result(
        {},
        `${visible(limit)} is reset for ${visible(value)}; in effect everywhere within 5 s.`,
      )
    })
}

function addList(limits: Command): void {
  paged(
    onlineCommand(limits, {
      name: 'list',
      does: "list the policy's limits, and the active overrides",
      examples: ['portcullis limits list', 'portcullis limits list --json'],
    }),
  ).action(async (options: CommonOptions & PageOptions) => {
    const { gateway, output } = workWith(options)
    const page = await gateway.get<LimitPage>('/limits', pageQuery(options))
    const overrides =
      page.overrides.length > 0
        ? `\n\n${table(page.overrides, OVERRIDE_COLUMNS, output.style)}`
        : ''
    const limits = page.limits.map((limit) => ({ ...limit, lease: leaseText(limit) }))
    output.result(page, table(limits, LIMIT_COLUMNS, output.style) + overrides)
    if (page.cursor !== undefined) output.remark(`More entries: --cursor ${page.cursor}`)
  })
}

const leaseText = ({ lease }: PolicyLimit): string | null =>
  lease ? `${lease.max} for ${lease.ttlMs} ms` : null

/** `portcullis limits`: lists limits, and manages overrides and windows. */
import type { Command } from '@commander-js/extra-typings'
import { seconds, whole } from '../arguments.ts'
import { onlineCommand, workWith } from '../command.ts'
import {
  kindOf,
  type Override,
  otherKindOf,
  overrideInWords,
  type PolicyLimit,
  readLimit,
} from '../limit-words.ts'
import { addListing, addRemoval } from '../records.ts'
import { record, visible } from '../text.ts'

const LIMIT = ['<limit>', 'name of the limit in the policy'] as const
const VALUE = ['<value>', 'subject, client, tenant or address, depending on the limit'] as const
const ISSUER = ['--issuer <issuer>', 'issuer of the value (default: all issuers)'] as const
const TENANT = [
  '--tenant <tenant>',
  'of a limit by subject: the subject as a member of this tenant',
] as const
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
const OVERRIDE_COLUMNS = [
  'id',
  'limit',
  'by',
  'value',
  'issuer',
  'tenant',
  'owner',
  'requests',
  'reason',
  'createdAt',
  'expiresAt',
]

export function addLimitCommands(program: Command): void {
  const limits = program.command('limits').description('limits and their overrides')
  addListing(limits, {
    does: "list the policy's limits, and the active overrides",
    examples: ['portcullis limits list', 'portcullis limits list --json'],
    path: '/limits',
    member: 'overrides',
    columns: OVERRIDE_COLUMNS,
    what: 'overrides',
    recordOf: withKind,
    first: { member: 'limits', columns: LIMIT_COLUMNS, rowOf: withLease },
  })
  onlineCommand(limits, {
    name: 'override',
    does: 'set another number of requests per window for one caller',
    examples: [
      'portcullis limits override standard alice --requests 1000 --expires-in 7d',
      'portcullis limits override tenants acme --requests 200 # names: portcullis limits list',
    ],
  })
    .argument(...LIMIT)
    .argument(...VALUE)
    .requiredOption('--requests <count>', 'requests per window', whole)
    .option(
      '--expires-in <time>',
      'lifetime of the override (default: until it is lifted)',
      seconds,
    )
    .option('--reason <text>', 'reason, for the list of overrides')
    .option(...ISSUER)
    .option(...TENANT)
    .action(async (limit, value, options) => {
      const { gateway, output } = workWith(options)
      const { issuer, tenant, requests, expiresIn: expiresInSeconds, reason } = options
      const order = { limit, value, issuer, tenant, requests, expiresInSeconds, reason }
      const answer = await gateway.post<Override>('/limits/overrides', order)
      const rule = options.json ? undefined : await readLimit(gateway, limit)
      const first = rule && `${overrideInWords(answer, rule)}\n\n`
      const { replaces: _, ...override } = answer
      output.result(answer, (first ?? '') + record(override, output.style))
      const doubt = rule && (await otherKindOf(gateway, rule, value))
      if (doubt !== undefined) output.remark(doubt)
    })
  addRemoval(limits, {
    name: 'lift',
    does: "remove an override: the policy's number applies again",
    examples: ['portcullis limits lift 0193b0a4-7c1e-7d3a-9b1c-2f6e8d4a5b6c'],
    path: '/limits/overrides',
    argument: 'id of the override, from `limits list`',
    done: (override) => `Override ${override} is lifted.`,
  })
  onlineCommand(limits, {
    name: 'reset',
    does: 'reset a window: all of its units are available again',
    examples: [
      'portcullis limits reset standard alice',
      'portcullis limits reset standard alice --tenant acme',
    ],
  })
    .argument(...LIMIT)
    .argument(...VALUE)
    .option(...ISSUER)
    .option(...TENANT)
    .action(async (limit, value, options) => {
      const { gateway, output } = workWith(options)
      const { issuer, tenant } = options
      await gateway.post('/limits/reset', { limit, value, issuer, tenant })
      const rule = options.json ? undefined : await readLimit(gateway, limit)
      const member = tenant === undefined ? '' : ` of tenant ${visible(tenant)}`
      output.result(
        {},
        `${visible(limit)} is reset for ${kindOf(rule)}${visible(value)}${member}; in effect everywhere within 5 s.`,
      )
      const doubt = rule && (await otherKindOf(gateway, rule, value))
      if (doubt !== undefined) output.remark(doubt)
    })
}

/** Adds which kind of caller an override is of. */
function withKind(override: object, page: Readonly<Record<string, unknown>>): object {
  const limits = page.limits as readonly PolicyLimit[]
  const { limit } = override as Override
  return { ...override, by: limits.find(({ name }) => name === limit)?.by }
}

/** Formats the lease of a limit as one cell. */
const withLease = (limit: object): object => {
  const { lease } = limit as PolicyLimit
  return { ...limit, lease: lease ? `${lease.max} for ${lease.ttlMs} ms` : null }
}

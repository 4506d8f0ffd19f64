/** `portcullis bans`: bans addresses and subjects for a limited time. */
import { Argument, type Command } from '@commander-js/extra-typings'
import { seconds } from '../arguments.ts'
import { onlineCommand, workWith } from '../command.ts'
import { addListing, addRemoval, waitOption } from '../records.ts'

const COLUMNS = [
  'id',
  'kind',
  'value',
  'issuer',
  'tenant',
  'owner',
  'reason',
  'createdAt',
  'createdBy',
  'expiresAt',
  'mode',
]

export function addBanCommands(program: Command): void {
  const bans = program
    .command('bans')
    .description('addresses and subjects that are refused, with any credential')
  onlineCommand(bans, {
    name: 'create',
    does: 'ban an address (IPv6: its whole /64) or a subject',
    examples: [
      'portcullis bans create address 203.0.113.7 --for 1h --reason "credential stuffing"',
      'portcullis bans create subject mallory --for 7d',
      'portcullis bans create subject mallory --tenant acme --for 7d',
    ],
  })
    .addArgument(new Argument('<kind>', 'address or subject').choices(['address', 'subject']))
    .argument('<value>', 'the address or the subject to ban')
    .requiredOption('--for <time>', 'duration: 90s, 15m, 1h, 2d', seconds)
    .option('--issuer <issuer>', 'issuer of the subject (default: all issuers)')
    .option('--tenant <tenant>', 'only members of this tenant (default: whatever the tenant is)')
    .option('--reason <text>', 'reason, for the list of bans')
    .addOption(waitOption())
    .action(async (kind, value, options) => {
      const { gateway, output } = workWith(options)
      const { for: seconds, issuer, tenant, reason, wait } = options
      const order = { kind, value, seconds, issuer, tenant, reason }
      output.thing(await gateway.post<object>('/bans', order, { wait }))
    })
  addListing(bans, {
    does: 'list active bans, newest first',
    examples: ['portcullis bans list'],
    path: '/bans',
    member: 'bans',
    columns: COLUMNS,
    what: 'active bans',
  })
  addRemoval(bans, {
    name: 'delete',
    does: 'lift a ban before its end',
    examples: ['portcullis bans delete 0193b0a4-7c1e-7d3a-9b1c-2f6e8d4a5b6c'],
    path: '/bans',
    argument: 'id of the ban, from `bans list`',
    done: (ban) => `Ban ${ban} is lifted.`,
  })
}

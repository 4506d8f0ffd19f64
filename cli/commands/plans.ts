/** `portcullis plans`: lists plans, and gives them to API keys, subjects, clients and tenants. */
import { Argument, type Command } from '@commander-js/extra-typings'
import { seconds } from '../arguments.ts'
import { onlineCommand, workWith } from '../command.ts'
import { addListing, addRemoval } from '../records.ts'

const PLAN_COLUMNS = ['name', 'default', 'limits']
const COLUMNS = ['id', 'by', 'value', 'issuer', 'plan', 'createdAt', 'expiresAt']

export function addPlanCommands(program: Command): void {
  const plans = program.command('plans').description('plans, and who has them')
  addListing(plans, {
    does: "list the policy's plans, and the active assignments",
    examples: ['portcullis plans list', 'portcullis plans list --json'],
    path: '/plans',
    member: 'assignments',
    columns: COLUMNS,
    what: 'assignments',
    first: { member: 'plans', columns: PLAN_COLUMNS, rowOf: withLimits },
  })
  onlineCommand(plans, {
    name: 'assign',
    does: 'give a plan to an API key, a subject, a client or a tenant',
    examples: [
      'portcullis plans assign client mobile-app pro',
      'portcullis plans assign tenant acme enterprise --expires-in 30d',
    ],
  })
    .addArgument(
      new Argument('<by>', 'what the value names').choices(['key', 'subject', 'client', 'tenant']),
    )
    .argument('<value>', 'the id of the API key, the subject, client or tenant')
    .argument('<plan>', 'name of the plan in the policy')
    .option('--issuer <issuer>', 'issuer of the value (default: all issuers)')
    .option('--expires-in <time>', 'lifetime (default: until it is removed)', seconds)
    .action(async (by, value, plan, options) => {
      const { gateway, output } = workWith(options)
      const { issuer, expiresIn: expiresInSeconds } = options
      const assignment = { by, value, plan, issuer, expiresInSeconds }
      output.thing(await gateway.post<object>('/plans/assignments', assignment))
    })
  addRemoval(plans, {
    name: 'remove',
    does: 'remove an assignment: the next plan that is found applies',
    examples: ['portcullis plans remove 0193b0a4-7c1e-7d3a-9b1c-2f6e8d4a5b6c'],
    path: '/plans/assignments',
    argument: 'id of the assignment, from `plans list`',
    done: (assignment) => `Assignment ${assignment} is removed.`,
  })
}

/** Formats the limits of a plan as one cell. */
function withLimits(plan: { readonly limits?: Readonly<Record<string, number>> }): object {
  const limits = Object.entries(plan.limits ?? {}).map(([name, units]) => `${name} ${units}`)
  return { ...plan, limits: limits.join(', ') }
}

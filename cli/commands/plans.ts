/** `portcullis plans`: lists plans, and gives them to API keys, subjects, clients and tenants. */
import { Argument, type Command } from 'commander'
import { id, seconds } from '../arguments.ts'
import {
  type CommonOptions,
  onlineCommand,
  type PageOptions,
  paged,
  pageQuery,
  workWith,
} from '../command.ts'
import { table } from '../text.ts'

interface AssignOptions extends CommonOptions {
  readonly issuer?: string
  readonly expiresIn?: number
}

interface PlanPage {
  readonly plans: readonly { readonly limits: Readonly<Record<string, number>> }[]
  readonly assignments: readonly object[]
  readonly cursor?: string
}

const PLAN_COLUMNS = ['name', 'default', 'limits']
const COLUMNS = ['id', 'by', 'value', 'issuer', 'plan', 'createdAt', 'expiresAt']

export function addPlanCommands(program: Command): void {
  const plans = program.command('plans').description('plans, and who has them')
  paged(
    onlineCommand(plans, {
      name: 'list',
      does: "list the policy's plans, and the active assignments",
      examples: ['portcullis plans list', 'portcullis plans list --json'],
    }),
  ).action(async (options: CommonOptions & PageOptions) => {
    const { gateway, output } = workWith(options)
    const page = await gateway.get<PlanPage>('/plans', pageQuery(options))
    const rows = page.plans.map((plan) => ({ ...plan, limits: limitsText(plan.limits) }))
    const assignments =
      page.assignments.length > 0 ? `\n\n${table(page.assignments, COLUMNS, output.style)}` : ''
    output.result(page, table(rows, PLAN_COLUMNS, output.style) + assignments)
    if (page.cursor !== undefined) output.remark(`More entries: --cursor ${page.cursor}`)
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
    .action(async (by: string, value: string, plan: string, options: AssignOptions) => {
      const { gateway, output } = workWith(options)
      const answer = await gateway.post<object>('/plans/assignments', {
        by,
        value,
        plan,
        issuer: options.issuer,
        expiresInSeconds: options.expiresIn,
      })
      output.thing(answer)
    })
  onlineCommand(plans, {
    name: 'remove',
    does: 'remove an assignment: the next plan that is found applies',
    examples: ['portcullis plans remove 0193b0a4-7c1e-7d3a-9b1c-2f6e8d4a5b6c'],
  })
    .argument('<id>', 'id of the assignment, from `plans list`', id)
    .action(async (assignment: string, options: CommonOptions) => {
      const { gateway, output } = workWith(options)
      await gateway.delete(`/plans/assignments/${assignment}`)
      output.result({}, `Assignment ${assignment} is removed.`)
    })
}

const limitsText = (limits: Readonly<Record<string, number>>): string =>
  Object.entries(limits)
    .map(([name, units]) => `${name} ${units}`)
    .join(', ')

/** `portcullis check` and `portcullis expand`: check a relation, and show how it is derived. */
import type { Command } from '@commander-js/extra-typings'
import { repeated } from '../arguments.ts'
import { onlineCommand, workWith } from '../command.ts'
import { REFUSED, UNDECIDED, usage } from '../failure.ts'
import { expansionLines, type TraceStep, traceLines, type UsersetNode } from '../relation-tree.ts'
import { record } from '../text.ts'
import { tupleIn } from '../tuples.ts'

export const TENANT = [
  '--tenant <tenant>',
  "tenant of the tuples (default: the operator's; without one, callers without a tenant)",
] as const

interface CheckAnswer {
  readonly allowed: boolean
  readonly outcome: 'allowed' | 'denied' | 'unknown'
  readonly trace?: { readonly root: TraceStep; readonly truncated: boolean }
}

const ENDS = `
Exit codes: 0 allowed; 1 denied, or the gateway refuses the call; 3 undecided, because a bound was exceeded
or a dependency failed. Treat every code except 0 as a denial.`
const OBJECT = ['<object>', 'type:id'] as const
const RELATION = ['<relation>', 'name of the relation in the model'] as const

/** Adds `check`. `prefix` is the command line before the command's name, for the examples. */
export function addCheck(parent: Command, prefix: string): void {
  onlineCommand(parent, {
    name: 'check',
    does: 'check whether a subject has a relation to an object',
    examples: [
      `${prefix} check order:7 viewer user:alice`,
      `${prefix} check order:7 viewer user:alice --trace`,
      `${prefix} check order:7 can_approve user:bob --with team:sales#member@user:bob --json`,
    ],
  })
    .argument(...OBJECT)
    .argument(...RELATION)
    .argument('<subject>', 'type:id, type:id#relation or type:*')
    .option('--trace', 'show the path that proves or refutes it')
    .option('--with <tuple>', 'additional tuple for this check only; repeatable', repeated)
    .option('--at-least <token>', 'consistency token of a write that the check must include')
    .option(...TENANT)
    .addHelpText('after', ENDS)
    .action(async (object, relation, subject, options) => {
      const { gateway, output } = workWith(options)
      const contextualTuples = options.with?.map((text) => {
        const tuple = tupleIn(text)
        if (tuple === undefined) throw usage('--with must be object#relation@subject')
        return tuple
      })
      const answer = await gateway.post<CheckAnswer>('/check', {
        tenant: options.tenant,
        object,
        relation,
        subject,
        contextualTuples,
        consistencyToken: options.atLeast,
        trace: options.trace,
      })
      const { trace, allowed, ...decision } = answer
      const lines = trace === undefined ? [] : ['', ...traceLines(trace.root)]
      if (trace?.truncated) lines.push('and more')
      output.result(answer, [record(decision, output.style), ...lines].join('\n'))
      if (allowed !== true) process.exitCode = decision.outcome === 'unknown' ? UNDECIDED : REFUSED
    })
}

/** Adds `expand`. `prefix` has the same meaning as in {@link addCheck}. */
export function addExpand(parent: Command, prefix: string): void {
  onlineCommand(parent, {
    name: 'expand',
    does: 'show one level of the relations and tuples behind a relation',
    examples: [`${prefix} expand order:7 viewer`],
  })
    .argument(...OBJECT)
    .argument(...RELATION)
    .option(...TENANT)
    .action(async (object, relation, options) => {
      const { gateway, output } = workWith(options)
      const { tenant } = options
      const answer = await gateway.post<{ readonly tree: { readonly root: UsersetNode } }>(
        '/expand',
        { tenant, object, relation },
      )
      output.result(answer, expansionLines(answer.tree.root).join('\n'))
    })
}

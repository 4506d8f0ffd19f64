/** `portcullis relations`: reads, writes, imports and checks relation tuples. */
import { type Command, InvalidArgumentError } from '@commander-js/extra-typings'
import { onlineCommand, type PageOptions, paged, pageQuery, workWith } from '../command.ts'
import { visible, visibleJson } from '../text.ts'
import { type Tuple, textOfTuple, tupleIn } from '../tuples.ts'
import { addCheck, addExpand, TENANT } from './relation-questions.ts'
import { addImport } from './relations-import.ts'

interface TuplePage {
  readonly tuples: readonly Tuple[]
  readonly cursor?: string
}

const PAGE_TUPLES = 200
const WRITTEN = `
A tuple is object#relation@subject. In ids, reserved characters are percent-encoded: % : # * and
white space. All tuples of a call are written or none.`

/** Collects tuples from repeated arguments. */
function tuples(text: string, earlier: readonly Tuple[] = []): readonly Tuple[] {
  const tuple = tupleIn(text)
  if (tuple === undefined) throw new InvalidArgumentError('It must be object#relation@subject.')
  return [...earlier, tuple]
}

export function addRelationCommands(program: Command): void {
  const relations = program
    .command('relations')
    .description('tuples: which subject has which relation to which object')
  for (const [name, list, done] of [
    ['write', 'writes', 'write tuples; existing tuples stay'],
    ['delete', 'deletes', 'delete tuples; a missing tuple is not an error'],
  ] as const) {
    onlineCommand(relations, {
      name,
      does: done,
      examples: [
        `portcullis relations ${name} order:7#viewer@user:alice order:7#viewer@team:sales#member`,
        `portcullis relations ${name} 'catalogue:spring#viewer@user:*' --tenant acme`,
      ],
    })
      .argument('<tuple...>', 'object#relation@subject', tuples)
      .option(...TENANT)
      .addHelpText('after', WRITTEN)
      .action(async (some, options) => {
        const { gateway, output } = workWith(options)
        const body = { tenant: options.tenant, [list]: some }
        output.thing(await gateway.post<object>('/relations', body))
      })
  }
  addRead(relations)
  addImport(relations)
  addCheck(relations, 'portcullis relations')
  addExpand(relations, 'portcullis relations')
}

/** Adds `check` and `expand` at the top level, without the `relations` prefix. */
export function addQuestionCommands(program: Command): void {
  addCheck(program, 'portcullis')
  addExpand(program, 'portcullis')
}

function addRead(relations: Command): void {
  paged(
    onlineCommand(relations, {
      name: 'read',
      does: 'list tuples, one in a line',
      examples: [
        'portcullis relations read --object order:7',
        'portcullis relations read --subject user:alice',
        'portcullis relations read --all --json',
      ],
    }),
  )
    .option('--object <object>', 'type:id, or type: for all objects of a type')
    .option('--relation <relation>', 'only with an object')
    .option('--subject <subject>', 'type:id, type:id#relation or type:*')
    .option(...TENANT)
    .option('--all', 'all pages; with --json one tuple in a line, as `relations import` reads them')
    .action(async (options) => {
      const { gateway, output } = workWith(options)
      const { object, relation, subject, tenant, all = false } = options
      const filter = { object, relation, subject, tenant }
      const read = (page: PageOptions) =>
        gateway.get<TuplePage>('/relations', { ...filter, ...pageQuery(page) })
      if (!all) {
        const page = await read(options)
        if (options.json || page.tuples.length > 0) output.result(page, linesOf(page.tuples, false))
        else output.remark('No tuples.')
        if (page.cursor !== undefined) output.remark(`More entries: --cursor ${page.cursor}`)
        return
      }
      let page = await read({ ...options, limit: options.limit ?? String(PAGE_TUPLES) })
      for (;;) {
        const text = linesOf(page.tuples, options.json ?? false)
        if (text !== '') process.stdout.write(`${text}\n`)
        if (page.cursor === undefined) return
        page = await read({ limit: String(PAGE_TUPLES), cursor: page.cursor })
      }
    })
}

const linesOf = (some: readonly Tuple[], json: boolean): string =>
  some.map((tuple) => (json ? visibleJson(tuple) : visible(textOfTuple(tuple)))).join('\n')

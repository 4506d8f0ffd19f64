/** Commands that lists of records share: one that lists a page, and one that ends a record. */
import { type Command, Option } from '@commander-js/extra-typings'
import { id } from './arguments.ts'
import {
  type CommonOptions,
  type Description,
  onlineCommand,
  type PageOptions,
  paged,
  pageQuery,
  workWith,
} from './command.ts'

type Page = Readonly<Record<string, unknown>> & { readonly cursor?: string }

interface Listing {
  readonly does: string
  readonly examples: Description['examples']
  /** The path of the call. */
  readonly path: string
  /** The member of the page with its records. */
  readonly member: string
  readonly columns: readonly string[]
  /** Names the records in the plural. */
  readonly what: string
  /** Options that select records, by the name of the query parameter, with their descriptions. */
  readonly filters?: Readonly<Record<string, string>>
  /** Returns the row of a record for people. Default: the record. */
  readonly recordOf?: (record: object, page: Page) => object
  /** What the page has besides, which is listed first: its member, columns, and rows for people. */
  readonly first?: {
    readonly member: string
    readonly columns: readonly string[]
    rowOf(item: object): object
  }
}

/** Adds `list`, which prints one page of records. */
export function addListing(
  parent: Command,
  { does, examples, path, member, columns, what, filters = {}, first, recordOf }: Listing,
): void {
  const list = paged(onlineCommand(parent, { name: 'list', does, examples }))
  for (const [name, description] of Object.entries(filters))
    list.option(`--${name} <${name}>`, description)
  list.action(async (options: CommonOptions & PageOptions & Readonly<Record<string, unknown>>) => {
    const { gateway, output } = workWith(options)
    const query = Object.fromEntries(
      Object.keys(filters).map((name) => [name, options[name] as string | undefined]),
    )
    const page = await gateway.get<Page>(path, { ...query, ...pageQuery(options) })
    const records = page[member] as readonly object[]
    if (first === undefined) {
      output.list(page, records, columns, what)
      return
    }
    const rows = (page[first.member] as readonly object[]).map(first.rowOf)
    const texts = [output.fitted(rows, first.columns)]
    const shown = recordOf === undefined ? records : records.map((one) => recordOf(one, page))
    if (shown.length > 0) texts.push(output.fitted(shown, columns))
    if (Number.isFinite(output.style.width))
      texts.unshift(`${rows.length} ${first.member}, ${records.length} ${what}`)
    output.result(page, texts.join('\n\n'))
    if (page.cursor !== undefined) output.remark(`More entries: --cursor ${page.cursor}`)
  })
}

interface Removal extends Description {
  /** The path of the call, before the id. */
  readonly path: string
  readonly argument: string
  /** Default: the parser of ids. */
  readonly parse?: (text: string) => string
  /** Whether the command ends access, so that it has `--wait`. Default false. */
  readonly endsAccess?: boolean
  /** Returns the sentence that reports the end of a record. */
  done(id: string): string
}

/** The option of commands that end access. */
export const waitOption = () =>
  new Option(
    '--wait <where>',
    'answer only when gateways that decide without a call to Redis refuse the callers, too',
  ).choices(['everywhere'])

/** Adds a command that ends one record by its id. */
export function addRemoval(
  parent: Command,
  { path, argument, parse = id, endsAccess = false, done, ...description }: Removal,
): void {
  const command = onlineCommand(parent, description).argument('<id>', argument, parse)
  if (endsAccess) command.addOption(waitOption())
  command.action(async (record, options: CommonOptions & { readonly wait?: string }) => {
    const { gateway, output } = workWith(options)
    await gateway.delete(`${path}/${record}`, { wait: options.wait })
    output.result({}, done(record))
  })
}

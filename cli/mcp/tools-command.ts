/** `portcullis mcp tools`: the tools of a gateway's MCP servers, the changed ones first. */
import { type CommonOptions, workWith } from '../command.ts'
import { counted, visible } from '../text.ts'

interface Tool {
  readonly name: string
  readonly pinned: string | null
  readonly seen: {
    readonly hash: string
    readonly at: string
    readonly definition: string | null
  } | null
  readonly approved: { readonly hash: string } | null
}

interface Answer {
  readonly servers: readonly { readonly path: string; readonly tools: readonly Tool[] }[]
}

const COLUMNS = ['state', 'server', 'tool', 'seenAt', 'hash']
const CHANGED = 'changed'

/** A tool without a hash in the policy may have any definition. */
function stateOf({ pinned, seen, approved }: Tool): string {
  if (pinned === null) return 'not pinned'
  if (seen === null || seen.hash === pinned) return 'as in the policy'
  return seen.hash === approved?.hash ? 'approved' : CHANGED
}

export async function listTools(
  options: CommonOptions & { readonly changed?: boolean },
): Promise<void> {
  const { gateway, output } = workWith(options)
  const { servers } = await gateway.get<Answer>('/mcp/tools')
  const all = servers.flatMap(({ path, tools }) =>
    tools.map((tool) => ({
      ...{ state: stateOf(tool), server: path, tool: tool.name },
      ...{ seenAt: tool.seen?.at ?? '', hash: tool.seen?.hash ?? tool.pinned ?? '' },
    })),
  )
  const first = all.filter(({ state }) => state === CHANGED)
  const others = options.changed === true ? [] : all.filter(({ state }) => state !== CHANGED)
  const answer = { tools: [...first, ...others] }
  const changed = servers.map(({ path, tools }) => ({
    path,
    tools: tools.filter((tool) => stateOf(tool) === CHANGED),
  }))
  const rows = answer.tools.length === 0 ? [] : [output.fitted(answer.tools, COLUMNS)]
  output.result(answer, [answerOf(changed), ...rows, ...changed.flatMap(textsOf)].join('\n\n'))
  if (first.length > 0)
    output.remark(
      'Read the whole definitions on the page MCP of the console before you approve them.',
    )
}

/** Says which tools changed. */
function answerOf(servers: Answer['servers']): string {
  const lines = servers.flatMap(({ path, tools }) => {
    if (tools.length === 0) return []
    const they = tools.length === 1 ? 'it was' : 'they were'
    const names = tools.map(({ name }) => visible(name)).join(', ')
    return [
      `${counted(tools.length, 'tool')} of ${visible(path)} changed since ${they} approved: ${names}.`,
    ]
  })
  return lines.join('\n') || 'No tool has another definition than the approved one.'
}

/** Returns what each tool says of itself now. */
const textsOf = ({ path, tools }: Answer['servers'][number]): readonly string[] =>
  tools.flatMap(({ name, seen }) => {
    const description = descriptionIn(seen?.definition ?? null)
    if (description === undefined) return []
    return [`${visible(name)} of ${visible(path)} says now: ${visible(description)}`]
  })

function descriptionIn(definition: string | null): string | undefined {
  if (definition === null) return undefined
  const { description } = JSON.parse(definition) as { readonly description?: unknown }
  return typeof description === 'string' ? description : undefined
}

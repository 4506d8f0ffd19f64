/** `portcullis mcp tools`: the tools of a gateway's MCP servers, the changed ones first. */
import { type CommonOptions, workWith } from '../command.ts'

interface Tool {
  readonly name: string
  readonly pinned: string | null
  readonly seen: { readonly hash: string; readonly at: string } | null
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
  const answer: { readonly tools: readonly object[]; readonly cursor?: string } = {
    tools: [...first, ...others],
  }
  output.list(answer, answer.tools, COLUMNS, 'tools')
  output.remark(
    first.length === 0
      ? 'No tool has another definition than the approved one.'
      : `${first.length} changed: read the definitions on the page MCP of the console before you approve them.`,
  )
}

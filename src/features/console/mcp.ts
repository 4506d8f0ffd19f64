/** The page of MCP servers: their tools, and definitions that have changed. */
import { html } from 'hono/html'
import type * as z from 'zod/mini'
import { actionForm } from './action-forms.ts'
import { type ConsolePage, type Markup, pathTo, table, when } from './layout.ts'
import { authorOf, card } from './markup.ts'
import { MCP_READ, mcpView } from './mcp-calls.ts'
import { unreadable } from './mistakes.ts'
import type { Desk, PageDefinition } from './page.ts'

type McpView = z.infer<typeof mcpView>
type Tool = McpView['servers'][number]['tools'][number]

const PATH = '/mcp'

export const MCP: PageDefinition = {
  path: PATH,
  id: 'mcp',
  name: 'MCP',
  needs: ['listMcpTools'],
  isOfPlatform: true,
  absent: 'The policy of this gateway has no MCP server: no route of it comes from mcp().',
  async show(desk): Promise<ConsolePage> {
    const view = await desk.read('listMcpTools', mcpView)
    if (view === undefined) throw unreadable(desk, 'listMcpTools', MCP_READ)
    const changed = view.servers.flatMap(({ path, tools }) =>
      tools.filter(isChanged).map((tool) => ({ path, tool })),
    )
    return {
      title: 'MCP servers',
      at: 'MCP',
      content: html`${card(
        'Changed definitions',
        changed.length === 0
          ? 'No tool has another definition than the approved one.'
          : html`${changed.map(({ path, tool }) => changeOf(desk, path, tool))}`,
      )}${view.servers.map(({ path, tools }) => card(`Tools of ${path}`, toolTable(path, tools)))}`,
    }
  },
}

const isChanged = ({ pinned, seen, approved }: Tool): boolean =>
  seen !== null && pinned !== null && seen.hash !== pinned && seen.hash !== approved?.hash

function changeOf(desk: Desk, server: string, { name, pinned, seen }: Tool): Markup | '' {
  if (seen === null) return ''
  return html`<h3>${name} at ${server}</h3>
<p>Seen ${when(seen.at)} UTC. Callers do not see the tool, and calls of it are refused.</p>
<p>Policy: <code>${pinned}</code><br>Seen: <code>${seen.hash}</code></p>
${
  seen.definition === null
    ? html`<p class="error">The new definition is too long to be shown, so it cannot be approved here. Review it at the server, and set its hash in the policy.</p>`
    : html`<details><summary>The new definition</summary><pre>${indented(seen.definition)}</pre></details>`
}
${
  desk.may('approveMcpTool') && seen.definition !== null
    ? actionForm({
        action: 'approveMcpTool',
        back: pathTo(PATH),
        given: { server, tool: name, hash: seen.hash },
      })
    : ''
}`
}

/** Indentation of a deeper text would multiply its size. */
const MAX_INDENTED_DEPTH = 16

const STRING = /"(?:\\.|[^"\\])*"?/g

/** Indents JSON, if it is not deep. */
function indented(text: string): string {
  let [depth, deepest] = [0, 0]
  for (const char of text.replace(STRING, ''))
    if (char === '{' || char === '[') deepest = Math.max(deepest, ++depth)
    else if (char === '}' || char === ']') depth -= 1
  return deepest > MAX_INDENTED_DEPTH ? text : JSON.stringify(JSON.parse(text), null, 2)
}

const toolTable = (server: string, tools: readonly Tool[]): Markup =>
  table(
    `Tools of ${server}`,
    ['Tool', 'Permission', 'Definition', 'Approved', '', 'Calls'],
    tools.map((tool) => [
      tool.name,
      tool.permission ?? '',
      isChanged(tool)
        ? html`<span class="tag deny">changed</span>`
        : tool.pinned === null
          ? 'any'
          : 'pinned',
      tool.approved === null ? '' : html`${when(tool.approved.at)} by ${authorOf(tool.approved)}`,
      tool.approved === null
        ? ''
        : actionForm({
            action: 'withdrawMcpApproval',
            back: pathTo(PATH),
            given: { server, tool: tool.name },
          }),
      html`<a href="${pathTo('/decisions', { tool: tool.name, last: '24h' })}">decisions</a>`,
    ]),
  )

/** The page of MCP servers: their tools, and definitions that have changed. */
import { html } from 'hono/html'
import * as z from 'zod/mini'
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
      content: html`${answerOf(view)}${changed.map(({ path, tool }) => changeOf(desk, path, tool))}${view.servers.map(({ path, tools }) => card(`Tools of ${path}`, toolTable(path, tools)))}`,
    }
  },
}

const isChanged = ({ pinned, seen, approved }: Tool): boolean =>
  seen !== null && pinned !== null && seen.hash !== pinned && seen.hash !== approved?.hash

/** Says first which tools changed. */
function answerOf({ servers }: McpView): Markup {
  const lines = servers.flatMap(({ path, tools }) => {
    const names = tools.filter(isChanged).map(({ name }) => name)
    if (names.length === 0) return []
    const many = names.length === 1 ? '1 tool' : `${names.length} tools`
    const they = names.length === 1 ? 'it was' : 'they were'
    return [`${many} of ${path} changed since ${they} approved: ${names.join(', ')}.`]
  })
  return lines.length === 0
    ? html`<p class="answer">No tool has another definition than the approved one.</p>`
    : html`${lines.map((line) => html`<p class="answer deny">${line}</p>`)}`
}

function changeOf(desk: Desk, server: string, { name, pinned, seen }: Tool): Markup | '' {
  if (seen === null) return ''
  const mayApprove = desk.may('approveMcpTool') && seen.definition !== null
  return card(
    `${name} of ${server}`,
    html`<p>Seen ${when(seen.at)} UTC. Callers do not see the tool, and calls of it are refused, unless the policy only observes changed definitions.</p>
${
  seen.definition === null
    ? html`<p class="error">The new definition is too long to be shown, so it cannot be approved here. Review it at the server, and set its hash in the policy.</p>`
    : newDefinition(seen.definition)
}
${
  mayApprove
    ? actionForm({
        action: 'approveMcpTool',
        back: pathTo(PATH),
        given: { server, tool: name, hash: seen.hash },
      })
    : ''
}
<details><summary>Hashes</summary><p>Policy: <code>${pinned}</code><br>Seen: <code>${seen.hash}</code></p></details>`,
  )
}

const definitionSchema = z.looseObject({
  description: z.optional(z.string()),
  inputSchema: z.optional(
    z.looseObject({
      properties: z.optional(z.record(z.string(), z.unknown())),
      required: z.optional(z.array(z.string())),
    }),
  ),
})

/** Shows what the model will read: the description, and the arguments. The policy has only the hash of the one before. */
function newDefinition(text: string): Markup {
  const { data } = z.safeParse(definitionSchema, JSON.parse(text))
  const { properties = {}, required = [] } = data?.inputSchema ?? {}
  const names = Object.keys(properties)
  return html`${
    data?.description === undefined
      ? ''
      : html`<h3>Its description is now</h3><pre>${data.description}</pre>`
  }${
    names.length === 0
      ? ''
      : html`<h3>Its arguments are now</h3>${table(
          `Arguments of the changed tool`,
          ['Argument', 'Needed', 'Schema'],
          names.map((name) => [
            name,
            required.includes(name) ? 'yes' : 'no',
            html`<code>${JSON.stringify(properties[name])}</code>`,
          ]),
        )}`
  }<p class="note">The policy has the hash of the approved definition, and not its text: compare with what you approved.</p>
<details><summary>The new definition</summary><pre>${indented(text)}</pre></details>`
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

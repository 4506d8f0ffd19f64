/** `portcullis mcp import`: reads the lists of an MCP server, and writes the part of a policy with pinned definitions. */
import { definitionHash } from '../../src/features/mcp/tool-definition.ts'
import { textOf } from '../arguments.ts'
import { refused, usage } from '../failure.ts'
import { contentOf, replace } from '../openapi/import-command.ts'
import { isUnedited } from '../openapi/module.ts'
import { createOutput } from '../output.ts'
import { counted, visible } from '../text.ts'
import { changesIn, type ImportedServer, mcpModule } from './module.ts'
import { openMcpSession } from './session.ts'

export interface McpImportOptions {
  readonly out: string
  readonly tokenStdin?: boolean
  readonly check?: boolean
  readonly force?: boolean
  readonly json?: boolean
}

const LOOPBACK = /^(127\.\d+\.\d+\.\d+|localhost|\[::1\])$/
const MAX_URI = 2_048
/** RFC 6750 section 2.1, `b64token`. */
const TOKEN = /^[\w.~+/-]+=*$/
/** The beginning of URIs that names a scheme, and for a hierarchical one the authority and its slash. */
const NARROW = /^[a-z][a-z\d+.-]*:(?:\/\/[^/*]*\/|(?!\/\/)[^*])/i

/** Runs the command. Throws a `Failure` for a server or a module that is refused. */
export async function importServer(address: string, options: McpImportOptions): Promise<void> {
  const output = createOutput(options.json ?? false)
  const url = urlOf(address)
  const token = options.tokenStdin ? await textOf('-') : undefined
  if (token !== undefined && !TOKEN.test(token))
    throw usage('the token from standard input is no bearer token (RFC 6750 section 2.1)')
  if (token !== undefined && url.protocol === 'http:' && !LOOPBACK.test(url.hostname))
    throw usage(`${url.origin}: must be https, because the token is sent there`)
  const before = contentOf(options.out)
  if (before !== undefined && !options.check && !options.force && !isUnedited(before))
    throw usage(
      `${options.out} is no module of this command, or was edited; move the changes to the policy, ` +
        'or replace the file with --force',
    )
  const server = await readServer(url, token)
  const text = mcpModule(server)
  const changes = changesIn(before ?? '', text)
  const isCurrent = before === text
  if (before !== undefined) for (const change of changes) output.remark(change)
  if (!isCurrent && !options.check) replace(options.out, text)
  const { tools, prompts, resources } = server
  output.result(
    {
      ...{ url: server.source, out: options.out, current: isCurrent || !options.check },
      ...{ tools: Object.fromEntries(tools), prompts, resources, changes },
    },
    `${counted(tools.size, 'tool')}, ${counted(prompts.length, 'prompt')}, ${counted(resources.length, 'resource')}.`,
  )
  const unchecked = [...tools.values()].filter(({ hasArguments }) => hasArguments).length
  if (unchecked > 0)
    output.remark(`${counted(unchecked, 'tool')} with arguments: add schemas in the policy.`)
  for (const template of server.unlisted)
    output.remark(
      `Not in the module: ${visible(template)} would admit resources of every scheme or host.`,
    )
  if (options.check && !isCurrent)
    throw refused(
      'not_current',
      `${options.out} is not current; review the changes, and run the command without --check`,
    )
}

async function readServer(url: URL, token: string | undefined): Promise<ImportedServer> {
  const session = await openMcpSession(url, token)
  try {
    const tools = await session.list({ method: 'tools/list', member: 'tools', key: 'name' })
    const prompts = await session.list({ method: 'prompts/list', member: 'prompts', key: 'name' })
    const resources = await session.list({
      ...{ method: 'resources/list', member: 'resources', key: 'uri', maxKey: MAX_URI },
    })
    const templates = await session.list({
      ...{ method: 'resources/templates/list', member: 'resourceTemplates', key: 'uriTemplate' },
      maxKey: MAX_URI,
    })
    const prefixes = [...templates.keys()].map(prefixOf)
    const imported = await Promise.all(
      [...tools].map(async ([name, tool]) => {
        const definition = await definitionHash(tool)
        return [name, { definition, hasArguments: hasArguments(tool.inputSchema) }] as const
      }),
    )
    return {
      // Without the query, which may have a key: the module is committed.
      source: url.origin + url.pathname,
      tools: new Map(imported),
      prompts: [...prompts.keys()],
      resources: [
        ...new Set([...resources.keys(), ...prefixes.filter((prefix) => NARROW.test(prefix))]),
      ],
      unlisted: [...templates.keys()].filter((template) => !NARROW.test(prefixOf(template))),
    }
  } finally {
    await session.close()
  }
}

/** Whether a tool accepts arguments. One without a readable schema does. */
function hasArguments(schema: unknown): boolean {
  if (typeof schema !== 'object' || schema === null) return true
  const { properties, additionalProperties } = schema as Readonly<Record<string, unknown>>
  const names = typeof properties === 'object' && properties !== null ? Object.keys(properties) : []
  return names.length > 0 || (additionalProperties !== undefined && additionalProperties !== false)
}

/** A template admits every URI with the part before its first expression (RFC 6570). */
const prefixOf = (template: string): string => `${template.split('{')[0]}*`

function urlOf(address: string): URL {
  const url = URL.canParse(address) ? new URL(address) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw usage('the MCP server must be an http or https URL, such as https://mcp.example.com/mcp')
  if (url.username !== '' || url.password !== '' || url.hash !== '')
    throw usage('the URL of the MCP server must have no credentials and no fragment')
  return url
}

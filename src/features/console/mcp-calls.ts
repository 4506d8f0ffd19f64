/** Operators' calls about the tools of MCP servers. */
import * as z from 'zod/mini'
import type { FeatureParts } from '../../gateway/feature.ts'
import { isRecord } from '../../inspection/json-rpc.ts'
import { type AdminCall, adminGroup } from '../../routes/admin/call.ts'
import type { CallFrame } from '../../routes/admin/frame.ts'
import {
  createdBy,
  createdByName,
  createdByOf,
  existing,
  inputRefused,
  time,
  timeOf,
} from '../../routes/admin/input.ts'
import { refuseTenant } from '../../routes/admin/tenant.ts'
import { describe } from '../../validators/checks.ts'
import { name } from '../../validators/names.ts'
import { accessOf } from '../mcp/definition.ts'
import { TOOL_APPROVALS } from '../mcp/tool-approvals.ts'
import { definitionHash } from '../mcp/tool-definition.ts'
import { createMcpTools, MAX_TEXT, type SeenTool } from './mcp-tools.ts'

export const MCP_READ = 'portcullis:mcp:read'
export const MCP_APPROVE = 'portcullis:mcp:approve'

const hash = z.string().check(z.regex(/^sha256-[\w-]{43}$/, 'must be sha256- and 43 characters'))
const toolView = z.strictObject({
  name: z.string(),
  permission: z.nullable(z.string()),
  pinned: z.nullable(z.string()).check(describe('the hash in the policy; null: any definition')),
  seen: z
    .nullable(
      z.strictObject({
        hash: z.string(),
        at: time,
        definition: z
          .nullable(z.string())
          .check(describe('compact JSON; null: too long to be shown, and to be approved')),
      }),
    )
    .check(describe('the last definition that was not the one of the policy')),
  approved: z.nullable(z.strictObject({ hash: z.string(), at: time, createdBy, createdByName })),
})
export const mcpView = z.strictObject({
  servers: z.array(z.strictObject({ path: z.string(), tools: z.array(toolView) })),
})
const NOT_SHOWN =
  'is a definition that is too long to be shown; set its hash in the policy after a review at the server'
const toolPath = { server: name(256), tool: name(256) }

/** Creates the calls. Undefined: the policy has no MCP servers. */
export function mcpCalls(parts: FeatureParts): (frame: CallFrame) => readonly AdminCall[] {
  const { redis, now, policy, authorizer } = parts
  const servers = policy.routes.flatMap(({ path, method, mcp }) => {
    const access = method === 'POST' && mcp !== undefined ? accessOf(mcp) : undefined
    return access === undefined ? [] : [{ path, tools: Object.entries(access.tools ?? {}) }]
  })
  if (servers.length === 0) return () => []
  const tools = createMcpTools(redis, now)
  TOOL_APPROVALS.offer(authorizer, tools)

  return function callsOf(frame) {
    const call = adminGroup('MCP', frame)
    return [
      call({
        method: 'GET',
        path: '/mcp/tools',
        permission: MCP_READ,
        id: 'listMcpTools',
        summary: 'List the tools of the MCP servers',
        description:
          'With the definitions that are not those of the policy. Operators with a tenant are refused (403).',
        response: 'The servers of the policy, and their tools.',
        reply: () => mcpView,
        async handle({ scope }) {
          refuseTenant(scope)
          return {
            servers: await Promise.all(
              servers.map(async ({ path, tools: listed }) => {
                const states = await tools.list(path)
                return {
                  path,
                  tools: await Promise.all(
                    listed.map(async ([tool, access]) => {
                      const { permission, definition } = access === true ? {} : access
                      const { seen, approved } = states.get(tool) ?? {}
                      return {
                        name: tool,
                        permission: permission ?? null,
                        pinned: definition ?? null,
                        seen: seen === undefined ? null : await seenOf(seen),
                        approved: approved
                          ? {
                              ...createdByIn(approved),
                              hash: approved.hash,
                              at: timeOf(approved.atSeconds),
                            }
                          : null,
                      }
                    }),
                  ),
                }
              }),
            ),
          }
        },
      }),
      call({
        method: 'POST',
        path: '/mcp/approvals',
        permission: MCP_APPROVE,
        id: 'approveMcpTool',
        summary: 'Approve a changed definition of a tool',
        description:
          'The definition is the one that was seen last, so that an operator approves what `GET /-/admin/mcp/tools` has ' +
          'shown. It is approved beside that of the policy, for 400 days, from the next list of tools on that a ' +
          `client reads, at most 10 seconds later. A definition of more than ${MAX_TEXT} characters is refused (422). ` +
          'Operators with a tenant are refused (403).',
        body: z.strictObject({ ...toolPath, hash }),
        example: { server: '/mcp', tool: 'search', hash: `sha256-${'A'.repeat(43)}` },
        status: 204,
        response: 'The definition is approved.',
        async handle({ body: { server, tool, hash: approved }, operator, scope, changed }) {
          refuseTenant(scope)
          const { seen } = (await tools.list(server)).get(tool) ?? {}
          if (seen?.hash !== approved)
            throw inputRefused('body', '/hash', 'must be the definition that was seen last')
          if (!(await isShown(seen))) throw inputRefused('body', '/hash', NOT_SHOWN)
          const approval = { ...createdByOf(operator), hash: approved }
          await tools.approve(server, tool, {
            ...approval,
            atSeconds: Math.floor(now() / 1_000),
          })
          changed('mcp-tool.approve', `${server} ${tool} ${approved}`)
        },
      }),
      call({
        method: 'POST',
        path: '/mcp/approvals/withdrawals',
        permission: MCP_APPROVE,
        id: 'withdrawMcpApproval',
        summary: 'Withdraw the approval of a definition of a tool',
        description:
          'From the next list of tools on, only the definition of the policy is approved. Operators with a tenant are ' +
          'refused (403).',
        body: z.strictObject(toolPath),
        example: { server: '/mcp', tool: 'search' },
        problems: [404],
        status: 204,
        response: 'The approval is withdrawn.',
        async handle({ body: { server, tool }, scope, changed }) {
          refuseTenant(scope)
          await existing(tools.withdraw(server, tool))
          changed('mcp-tool.withdraw', `${server} ${tool}`)
        },
      }),
    ]
  }
}

/**
 * Reports whether the stored text is all that the hash covers. An operator approves nothing that the list does not
 * show, such as a definition that is too long.
 */
async function isShown({ hash, text }: SeenTool): Promise<boolean> {
  try {
    const definition: unknown = JSON.parse(text)
    return isRecord(definition) && (await definitionHash(definition)) === hash
  } catch {
    return false
  }
}

const seenOf = async (seen: SeenTool) => ({
  hash: seen.hash,
  at: timeOf(seen.atSeconds),
  definition: (await isShown(seen)) ? seen.text : null,
})

const createdByIn = (record: {
  readonly createdBy: string
  readonly createdByName?: string | undefined
}) => ({
  createdBy: record.createdBy,
  ...(record.createdByName !== undefined && { createdByName: record.createdByName }),
})

/** Who may use the MCP server, which tools, and with which arguments. A tool that is not listed is refused and hidden. */
import { definePolicy } from 'portcullis'
import { authorizationServer } from 'portcullis/authorization-server'
import { mcp } from 'portcullis/mcp'
import { operators } from 'portcullis/operators'
import * as z from 'zod/mini'

const text = z.string().check(z.minLength(1), z.maxLength(10_000))

export default definePolicy({
  roles: {
    reader: ['mcp:use', 'notes:read'],
    writer: ['mcp:use', 'notes:read', 'notes:write'],
    operator: ['portcullis:*'],
  },
  limits: {
    standard: { limit: 120, windowSeconds: 60, by: 'subject', onUnavailable: 'deny' },
  },
  routes: [
    ...mcp({
      path: '/mcp',
      permission: 'mcp:use',
      limits: ['standard'],
      tools: {
        list_notes: { permission: 'notes:read' },
        add_note: { permission: 'notes:write', arguments: z.strictObject({ text }) },
      },
    }),
  ],
  // The command line (`npx portcullis`) needs both.
  // openapi() from 'portcullis/openapi' adds a page about all calls, at /-/docs.
  features: [operators(), authorizationServer()],
})

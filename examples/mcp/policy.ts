/** Policy of an MCP server for books: which roles may use which tools, with which arguments. */
import { definePolicy } from 'portcullis'
import { authorizationServer } from 'portcullis/authorization-server'
import { mcp } from 'portcullis/mcp'
import { operators } from 'portcullis/operators'
import * as z from 'zod'

const isbn = z.string().regex(/^\d{13}$/, 'thirteen digits')

export default definePolicy({
  roles: {
    reader: ['mcp:use', 'books:read'],
    librarian: ['mcp:use', 'books:*'],
    operator: ['portcullis:*'],
  },
  // The command line needs both.
  features: [operators(), authorizationServer()],
  limits: {
    standard: { limit: 120, windowSeconds: 60, by: 'subject', onUnavailable: 'deny' },
    costly: { limit: 30, windowSeconds: 60, by: 'subject', onUnavailable: 'deny' },
  },
  routes: [
    ...mcp({
      path: '/mcp',
      permission: 'mcp:use',
      limits: ['standard'],
      maxBodyBytes: 65_536,
      tools: {
        list_shelves: true,
        search_books: {
          permission: 'books:read',
          limits: ['costly'],
          arguments: z.strictObject({
            text: z.string().min(1).max(200),
            limit: z.int().min(1).max(50).optional(),
          }),
        },
        remove_book: {
          permission: 'books:delete',
          arguments: z.strictObject({ isbn }),
        },
      },
    }),
  ],
})

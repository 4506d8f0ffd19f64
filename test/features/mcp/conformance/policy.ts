/** The policy before the server of the conformance suite: everything that it has, and calls that are refused. */
import * as z from 'zod'
import { mcp } from '../../../../src/features/mcp/index.ts'
import { definePolicy } from '../../../../src/index.ts'

export const policy = definePolicy({
  roles: { user: ['mcp:use'] },
  limits: { once: { limit: 1, windowSeconds: 600, by: 'subject', onUnavailable: 'deny' } },
  abuse: { bans: false, authenticationFailures: false },
  routes: [
    ...mcp({
      path: '/mcp',
      permission: 'mcp:use',
      tools: {
        '*': { arguments: 'any' },
        forbidden: { permission: 'mcp:admin' },
        strict: { arguments: z.strictObject({ count: z.number() }) },
        limited: { limits: ['once'] },
      },
      resources: { '*': true },
      prompts: { '*': true },
    }),
  ],
})

/** The policy for a server of the SDK, with or without its guards. */
import { mcp } from '../../../../src/features/mcp/index.ts'
import { definePolicy } from '../../../../src/index.ts'

export const policyOf = (isGuarded: boolean) =>
  definePolicy({
    roles: { user: ['mcp:use'] },
    limits: {},
    routes: isGuarded
      ? [
          ...mcp({
            path: '/mcp',
            permission: 'mcp:use',
            recheckSeconds: 1,
            tools: { ask_client: true, ask_refusing_client: true, watch: true },
          }),
        ]
      : [
          { method: 'POST', path: '/mcp', permission: 'mcp:use' },
          { method: 'GET', path: '/mcp', permission: 'mcp:use' },
          { method: 'DELETE', path: '/mcp', permission: 'mcp:use', maxBodyBytes: 0 },
        ],
  })

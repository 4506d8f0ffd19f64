/** A policy whose users give agents and other public clients access to an MCP server. */
import { definePolicy } from 'portcullis'
import { authorizationCode } from 'portcullis/authorization-code'
import { authorizationServer } from 'portcullis/authorization-server'
import { mcp } from 'portcullis/mcp'
import { signIn } from 'portcullis/sign-in'

export default definePolicy({
  roles: { reader: ['mcp:use', 'books:read'] },
  limits: { standard: '100/min' },
  features: [
    authorizationServer(),
    signIn(),
    authorizationCode({ scopes: { 'books:read': 'Search the books' } }),
  ],
  routes: mcp({
    path: '/mcp',
    permission: 'mcp:use',
    limits: ['standard'],
    tools: { search_books: { permission: 'books:read' } },
  }),
})

/** Accepts documents of some hosts only. */
export const ofSomeHosts = authorizationCode({
  documents: { allow: ['claude.ai', '*.example.com'], deny: ['old.example.com'] },
})

/** Lets clients register themselves. */
export const withRegistration = authorizationCode({
  registration: { perAddress: 20, unusedSeconds: 86_400 },
})

/** Lets the company's provider decide, without a consent page. */
export const withAssertions = authorizationCode({
  identityAssertions: ['https://login.example.com'],
})

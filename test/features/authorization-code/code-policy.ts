/** A policy with the authorization endpoint, behind the real sign-in. */
import { authorizationCode } from '../../../src/features/authorization-code/index.ts'
import { authorizationServer } from '../../../src/features/authorization-server/index.ts'
import { german } from '../../../src/features/languages/german.ts'
import { signIn } from '../../../src/features/sign-in/index.ts'
import { definePolicy } from '../../../src/policy/policy.ts'

export const policy = () =>
  definePolicy({
    roles: { reader: ['mcp:use', 'orders:read'] },
    limits: { standard: '1000/min' },
    features: [
      authorizationServer(),
      signIn({ requestsPerMinute: 10_000, branding: { languages: [german] } }),
      authorizationCode({
        scopes: { 'mcp:use': 'Use the library' },
        documents: { loopback: true },
        registration: true,
      }),
    ],
    routes: [
      { method: 'GET', path: '/mcp', permission: 'mcp:use', limits: ['standard'] },
      { method: 'GET', path: '/orders', permission: 'orders:read', limits: ['standard'] },
    ],
  })

/** The operators' call that mints access tokens, to try a call as another subject. */

import * as z from 'zod/mini'
import { type AdminCall, adminGroup } from '../../routes/admin/call.ts'
import { existing, time, timeOf } from '../../routes/admin/input.ts'
import { refuseForeignClientIds, selectTenant } from '../../routes/admin/tenant.ts'
import { accessTokenSeconds } from '../../validators/access-token.ts'
import { describe } from '../../validators/checks.ts'
import { name, roleNames, scopeNames } from '../../validators/names.ts'
import type { AdminContext } from './admin-context.ts'
import { issuableSecond, refuseBeyond } from './grant.ts'

const newTokenSchema = z.strictObject({
  subject: name(255),
  roles: z.optional(roleNames),
  scopes: z.optional(scopeNames),
  tenant: z.optional(name(256)),
  client: z.optional(name(256)).check(describe('default: the subject of the operator')),
  ttlSeconds: z.optional(accessTokenSeconds).check(describe("default: the policy's lifetime")),
  format: z.optional(z.enum(['jwt', 'opaque'])).check(describe('default: jwt')),
})

export function tokenCalls(context: AdminContext): AdminCall[] {
  const { tokenIssuer, publicUrl, clients } = context
  const call = adminGroup('Tokens', context)
  return [
    call({
      method: 'POST',
      path: '/tokens',
      permission: 'tokens:mint',
      id: 'mintToken',
      summary: 'Mint an access token',
      description:
        'An operator with this permission can act as any subject at the origin. Roles with ' +
        'operator permissions that the caller does not have are refused (403), and so is a ' +
        "tenant other than the caller's own. Without signing keys, the call does not exist (404).",
      body: newTokenSchema,
      example: { subject: 'alice', roles: ['reader'] },
      status: 201,
      response: 'The token, returned only in this response.',
      reply: () => z.strictObject({ token: z.string(), tokenId: z.string(), expiresAt: time }),
      problems: [404],
      async handle({ body, operator, scope, changed }) {
        const issuer = await existing(tokenIssuer)
        const { subject, roles = [], scopes = [], client = operator.subject } = body
        const tenant = selectTenant(scope, body.tenant)
        await refuseForeignClientIds(scope, [subject, client], clients)
        const grant = { subject, client, tenant, roles, scopes, audiences: [publicUrl] }
        refuseBeyond(operator, grant, context)
        const issued = await issuer.issue(grant, {
          ttlSeconds: body.ttlSeconds,
          format: body.format,
          issuedAtSeconds: await issuableSecond(operator, grant, context),
        })
        changed('token.mint', issued.tokenIdHash)
        const { token, tokenId, expiresAtSeconds } = issued
        return { token, tokenId, expiresAt: timeOf(expiresAtSeconds) }
      },
    }),
  ]
}

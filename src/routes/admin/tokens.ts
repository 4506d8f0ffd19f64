/** The operators' call that mints access tokens, to try something as another subject. */
import * as z from 'zod'
import type { PolicyLimit } from '../../policy/policy.ts'
import { accessTokenSeconds } from '../../validators/access-token.ts'
import { name, roleNames, scopeNames } from '../../validators/operator-names.ts'
import { type AdminCall, adminGroup, timeOf, unknownId } from './call.ts'
import { issuableSecond, refuseBeyond } from './grant.ts'
import { time } from './schemas.ts'
import type { AdminOptions } from './stores.ts'
import { refuseOthersNames, tenantOf } from './tenant.ts'

const newTokenSchema = z.strictObject({
  subject: name(255),
  roles: roleNames.optional(),
  scopes: scopeNames.optional(),
  tenant: name(256).optional(),
  client: name(256).optional().describe('default: the operator'),
  ttlSeconds: accessTokenSeconds.optional().describe("default: the policy's"),
  format: z.enum(['jwt', 'opaque']).optional().describe('default jwt'),
})

/** Creates the call `/-/admin/tokens`. */
export function tokenCalls(options: AdminOptions, limits: readonly PolicyLimit[]): AdminCall[] {
  const { tokenIssuer, publicUrl, clients } = options
  const tenantIssuers = options.tenantIssuers
  const call = adminGroup('Tokens', limits)
  return [
    call({
      method: 'POST',
      path: '/tokens',
      permission: 'tokens:mint',
      id: 'mintToken',
      summary: 'Mint an access token',
      description:
        'Whoever may do this may become anybody at the origin. Roles that can do more here than the ' +
        'caller are refused (403), and so is another tenant than the caller has. Without signing keys there is no such call (404).',
      body: newTokenSchema,
      example: { subject: 'alice', roles: ['reader'] },
      status: 201,
      answer: 'The token, shown this once.',
      reply: () => z.strictObject({ token: z.string(), tokenId: z.string(), expiresAt: time }),
      problems: [404],
      async handle({ body, operator, by, changed }) {
        if (tokenIssuer === undefined) throw unknownId()
        const { subject, roles = [], scopes = [], client = by, ttlSeconds, format } = body
        const wall = { call: 'tokens:mint', tenantIssuers, clients } as const
        const tenant = tenantOf(operator, body.tenant, wall)
        await refuseOthersNames(operator, [subject, client], wall)
        const grant = { subject, client, tenant, roles, scopes, audiences: [publicUrl] }
        refuseBeyond(operator, grant, options)
        const issuedAtSeconds = await issuableSecond(operator, grant, options)
        const issued = await tokenIssuer.issue(grant, { ttlSeconds, format, issuedAtSeconds })
        changed('token.mint', issued.tokenIdHash)
        const { token, tokenId, expiresAtSeconds } = issued
        return { token, tokenId, expiresAt: timeOf(expiresAtSeconds) }
      },
    }),
  ]
}

/** Operators' calls about what users have allowed clients to do. */
import * as z from 'zod/mini'
import { type AdminCall, adminGroup, type CallGroup } from '../../routes/admin/call.ts'
import { existing, time, timeOf } from '../../routes/admin/input.ts'
import {
  ownersWithin,
  selectIssuers,
  selectTenant,
  type TenantScope,
} from '../../routes/admin/tenant.ts'
import { describe } from '../../validators/checks.ts'
import { issuerName, name, tenantName } from '../../validators/names.ts'
import type { User } from './consent.ts'
import type { Withdrawal } from './withdrawal.ts'

const subject = name(255)
const issuer = z
  .optional(issuerName)
  .check(describe('the issuer that vouches for the subject; default: all trusted issuers'))

const consentView = () =>
  z.strictObject({
    client: z.string().check(describe('client_id, which may be a URL')),
    name: z.string(),
    redirectUri: z.string().check(describe('without the port of a loopback redirect')),
    scopes: z.array(z.string()),
    audiences: z.array(z.string()),
    issuer: z.string(),
    allowedAt: time,
  })

const tenant = z
  .optional(tenantName)
  .check(
    describe(
      'the tenant of the user; default: of the operator, or consents that name no tenant, as those of ' +
        'earlier versions',
    ),
  )

export const consentCalls =
  (withdrawal: Withdrawal): CallGroup =>
  (context): AdminCall[] => {
    const call = adminGroup('Consents', context)
    function listUsers(
      scope: TenantScope,
      named: { issuer?: string | undefined; subject: string; tenant?: string | undefined },
    ): readonly User[] {
      const of = { subject: named.subject, tenant: selectTenant(scope, named.tenant) }
      const owners = ownersWithin(scope, selectIssuers(named.issuer, context.issuers))
      return owners.map((one) => ({ ...of, issuer: one }))
    }
    return [
      call({
        method: 'GET',
        path: '/consents',
        permission: 'consents:list',
        id: 'listConsents',
        summary: 'List what a user has allowed clients to do',
        query: z.strictObject({ subject, issuer, tenant }),
        response: 'The consents of the user, the newest of each issuer first.',
        reply: () => z.strictObject({ consents: z.array(consentView()) }),
        async handle({ query, scope }) {
          const consents = []
          for (const user of listUsers(scope, query))
            for (const { allowedAtSeconds, ...consent } of await withdrawal.list(user))
              consents.push({
                ...consent,
                issuer: user.issuer,
                allowedAt: timeOf(allowedAtSeconds),
              })
          return { consents }
        },
      }),
      call({
        method: 'POST',
        path: '/consents/withdrawals',
        permission: 'consents:withdraw',
        id: 'withdrawConsent',
        summary: 'Withdraw what a user has allowed a client to do',
        description:
          'Ends the sessions of the client for this user from the next request on. The client needs ' +
          'a new consent afterwards.',
        body: z.strictObject({ client: name(2_048), subject, issuer, tenant }),
        example: { client: 'https://app.example.com/client.json', subject: 'alice' },
        response: 'The consent is withdrawn.',
        status: 204,
        problems: [404],
        async handle({ body, scope, changed }) {
          let isFound = false
          for (const user of listUsers(scope, body))
            if (await withdrawal.withdraw(user, body.client)) isFound = true
          await existing(isFound)
          changed('consent.withdraw', body.client)
        },
      }),
    ]
  }

/** The operators' call that explains a decision. */

import * as z from 'zod/mini'
import type { Principal } from '../../access/principal.ts'
import { deriveRevocationKeys } from '../../access/revocation/revocation.ts'
import { addressGroup } from '../../middleware/client-address.ts'
import { type AdminCall, adminGroup } from '../../routes/admin/call.ts'
import { existing, inputRefused, time, timeOf } from '../../routes/admin/input.ts'
import {
  confinedTo,
  ownersWithin,
  refuseOtherTenant,
  refuseTenant,
  selectIssuers,
  selectTenant,
  type TenantScope,
  withinTenant,
} from '../../routes/admin/tenant.ts'
import { describe } from '../../validators/checks.ts'
import { issuerName, name, roleNames, scopeNames } from '../../validators/names.ts'
import { integer } from '../../validators/schema-parts.ts'
import { consultedSeconds } from '../authorization-server/grant-store.ts'
import type { AdminContext } from './admin-context.ts'

const MAX_TEXT = 32_768
/** An address for documentation (RFC 5737). */
const DEFAULT_ADDRESS = '192.0.2.1'

const explainedRequestSchema = z.strictObject({
  method: z.string().check(z.regex(/^[A-Z]{1,16}$/, 'must be a method in upper case')),
  path: z
    .string()
    .check(
      z.maxLength(8_192),
      z.regex(/^\/[\x21-\x7e]*$/, 'must be a path with an optional query'),
      describe('path and query, as a client sends them'),
    ),
  headers: z.optional(z.record(z.string(), z.string().check(z.maxLength(8_192)))),
  body: z.optional(z.string().check(z.maxLength(MAX_TEXT))),
  address: z.optional(z.string()).check(describe('client address; default 192.0.2.1')),
  token: z
    .optional(z.string().check(z.minLength(1), z.maxLength(8_192)))
    .check(describe('a bearer token or an API key; it is verified as in a request')),
  caller: z
    .optional(
      z.strictObject({
        subject: name(255),
        issuer: z.optional(issuerName).check(describe('default: the gateway')),
        client: z.optional(name(255)),
        tenant: z.optional(name(255)),
        roles: z.optional(roleNames),
        scopes: z.optional(scopeNames),
        acr: z.optional(name(256)).check(describe('authentication context class of the login')),
        authTime: z
          .optional(integer())
          .check(describe('when the user authenticated, in seconds since the epoch')),
      }),
    )
    .check(describe('a caller to assume, in place of a token')),
})

type AssumedCaller = NonNullable<z.infer<typeof explainedRequestSchema>['caller']>

const explanationView = () =>
  z.strictObject({
    decision: z.enum(['allow', 'deny', 'error']),
    status: integer(),
    route: z.nullable(z.string()),
    reason: z.string().check(describe('`ok`, or the precise reason of the audit event')),
    observed: z.array(z.string()),
    stages: z.array(
      z.strictObject({
        stage: z.string(),
        outcome: z.enum(['passed', 'refused', 'failed', 'answered']),
        read: z
          .record(z.string(), z.unknown())
          .check(describe('what the stage read; no credential')),
        why: z.string(),
      }),
    ),
    revokedBefore: z
      .array(z.strictObject({ kind: z.string(), until: time }))
      .check(describe('what revokes earlier credentials of an assumed caller')),
    origin: z
      .nullable(
        z.strictObject({
          method: z.string(),
          path: z.string(),
          headers: z.record(z.string(), z.string()),
        }),
      )
      .check(describe('what the origin would receive; null for a refused request')),
  })

export function explanationCalls(context: AdminContext): AdminCall[] {
  const { clients, explain, publicUrl, issuers, tenantIssuers, scopeUseOf, revocationFacts, now } =
    context
  const call = adminGroup('Explanations', context)

  function createPrincipal(
    scope: TenantScope,
    { issuer = publicUrl, roles, scopes, acr, authTime, ...caller }: AssumedCaller,
  ): Principal {
    ownersWithin(scope, selectIssuers(issuer, issuers))
    const nowSeconds = Math.floor(now() / 1000)
    return {
      client: undefined,
      ...caller,
      tenant: selectTenant(scope, caller.tenant),
      issuer,
      tokenIssuer: issuer,
      session: undefined,
      roles: roles ?? [],
      scopes: scopes ?? [],
      scopeUse: scopeUseOf(issuer),
      tokenId: undefined,
      tokenIdHash: undefined,
      confirmation: undefined,
      issuedAtSeconds: nowSeconds,
      expiresAtSeconds: nowSeconds + 1,
      login: { acr, authTimeSeconds: authTime },
    }
  }

  /** Returns the cutoffs that revoke earlier credentials of a caller. Throws `Unavailable` if they cannot be read. */
  async function cutoffsOf(caller: Principal) {
    const { revokedBefore } = await deriveRevocationKeys(revocationFacts.keys, caller)
    const keys = revokedBefore.map(({ key }) => key)
    const { values } = await revocationFacts.consult({ keys, subject: caller.subject })
    return revokedBefore.flatMap(({ kind }, at) => {
      const seconds = consultedSeconds(values[at])
      return seconds === undefined ? [] : [{ kind, until: timeOf(seconds) }]
    })
  }

  return [
    call({
      method: 'POST',
      path: '/explanations',
      permission: 'requests:explain',
      id: 'explainRequest',
      summary: 'Explain the decision about a request',
      description:
        'Runs the pipeline of the gateway with its present state and reports each stage. The ' +
        'request has no effect: no limit counts it, it takes no slot, no proof is used, no ' +
        'session is renewed, no failure is recorded, and the origin is not called. Only this call itself is audited. The request is one of a ' +
        'route of the policy. `caller` is assumed, with a token that is issued now. `token` is checked as in a request. Operators with a tenant explain requests of callers of their tenant, whose ' +
        'credential is valid, from the default address; all others are refused (403).',
      body: explainedRequestSchema,
      changes: false,
      example: {
        method: 'GET',
        path: '/orders/1',
        caller: { subject: 'alice', roles: ['reader'] },
      },
      response: 'The explanation. It contains no credential.',
      reply: explanationView,
      problems: [404],
      async handle({ body: { caller, address = DEFAULT_ADDRESS, ...request }, scope }) {
        const tenant = confinedTo(scope)
        // The limits and bans of an address show the requests of others.
        if (tenant !== undefined && address !== DEFAULT_ADDRESS) refuseTenant(scope)
        if (caller !== undefined && request.token !== undefined)
          throw inputRefused('body', '/token', 'must not be given together with `caller`')
        if (request.path.startsWith('/-/'))
          throw inputRefused('body', '/path', 'is a path of the gateway, which no policy decides')
        if (addressGroup(address) === undefined)
          throw inputRefused('body', '/address', 'must be an IP address')
        // Limits of a client show the requests of others.
        if (tenant !== undefined && caller?.client !== undefined)
          await withinTenant(scope, clients.find(caller.client))
        const assumed = caller && createPrincipal(scope, caller)
        const explained = await existing(
          explain({
            request: createRequest(publicUrl, request),
            address,
            caller: assumed,
            refuseActor(actor) {
              if (tenant === undefined) return
              if (actor.issuer === null || !tenantIssuers.has(actor.issuer)) refuseTenant(scope)
              refuseOtherTenant(scope, actor.tenant)
            },
          }),
        )
        if (assumed === undefined) return { ...explained, revokedBefore: [] }
        return { ...explained, revokedBefore: await cutoffsOf(assumed) }
      },
    }),
  ]
}

function createRequest(
  publicUrl: string,
  {
    method,
    path,
    headers,
    body,
    token,
  }: Omit<z.infer<typeof explainedRequestSchema>, 'caller' | 'address'>,
): Request {
  try {
    const fields = new Headers(headers)
    if (token !== undefined) fields.set('authorization', `Bearer ${token}`)
    if (body !== undefined && !fields.has('content-type'))
      fields.set('content-type', 'application/json')
    const { protocol, host } = new URL(publicUrl)
    return new Request(`${protocol}//${fields.get('host') ?? host}${path}`, {
      method,
      headers: fields,
      ...(body !== undefined && { body }),
    })
  } catch {
    throw inputRefused('body', '', 'is not a request that a client can send')
  }
}

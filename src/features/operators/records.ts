/** Operators' calls about the audit trail, its erasures, and the signing keys. */

import * as z from 'zod/mini'
import { type SigningJwk, signingKeyState } from '../../access/tokens/signing-keys.ts'
import type { Erasure } from '../../audit/erasure.ts'
import { auditEventSchema } from '../../audit/event-schema.ts'
import {
  type AuditQuery,
  auditQuerySchema,
  chainPageSchema,
  chainQuerySchema,
} from '../../audit/log.ts'
import { addressGroup } from '../../middleware/client-address.ts'
import { type AdminCall, adminGroup } from '../../routes/admin/call.ts'
import {
  cursor,
  existing,
  idParams,
  inputRefused,
  requireConfigured,
  time,
  timeOf,
} from '../../routes/admin/input.ts'
import {
  confinedTo,
  ownersWithin,
  refuseTenant,
  selectTenant,
  withinTenant,
} from '../../routes/admin/tenant.ts'
import { describe } from '../../validators/checks.ts'
import { issuerName, name, tenantName } from '../../validators/names.ts'
import { integer } from '../../validators/schema-parts.ts'
import type { AdminContext } from './admin-context.ts'

const keyView = () =>
  z.strictObject({
    kid: z.string(),
    alg: z.string(),
    state: z
      .enum(['active', 'next', 'retired'])
      .check(describe('active: signs; next: will sign; retired: only verifies, until it expires')),
    notBefore: z.optional(time),
    expiresAt: z.optional(time),
  })

function keyViewOf(key: SigningJwk, keys: readonly SigningJwk[], nowMs: number) {
  const state = signingKeyState(key, keys, nowMs)
  return {
    kid: key.kid,
    alg: key.alg,
    state: state === 'active' || state === 'next' ? state : 'retired',
    ...(key.nbf !== undefined && { notBefore: timeOf(key.nbf) }),
    ...(key.exp !== undefined && { expiresAt: timeOf(key.exp) }),
  } satisfies z.infer<ReturnType<typeof keyView>>
}

/** The issuer does not have to be trusted any more. */
const newErasureSchema = z.strictObject({
  subject: name(255).check(describe('the `sub` to erase from the audit trail')),
  issuer: issuerName.check(describe('the issuer of the subject, as in audit events')),
  tenant: z
    .optional(tenantName)
    .check(describe('only events of callers with this tenant; default: all events of the subject')),
})

const erasureView = () =>
  z.strictObject({
    id: z.uuid(),
    state: z
      .enum(['pending', 'running', 'done'])
      .check(describe('done: the subject is in neither the database nor its export')),
    orderedAt: time.check(describe('events of decisions up to this time are erased')),
    rows: integer().check(
      describe('the number of erased rows of the chain, when the state is done'),
    ),
    tenant: z.nullable(z.string()).check(describe('null: the events of every tenant')),
  })

const erasureViewOf = ({ orderedMs, tenant, owner: _, ...erasure }: Erasure) =>
  ({
    ...erasure,
    tenant: tenant ?? null,
    orderedAt: new Date(orderedMs).toISOString(),
  }) satisfies z.infer<ReturnType<typeof erasureView>>

/** Returns the address as events have it. A hash of an address stays as it is. */
function recordedAddress({ address }: Pick<AuditQuery, 'address'>): Pick<AuditQuery, 'address'> {
  return address === undefined ? {} : { address: addressGroup(address) ?? address }
}

export function recordCalls(context: AdminContext): AdminCall[] {
  const { auditLog, chainLog, auditErasures, overflowRedaction, signingKeys, now } = context
  const { tenantIssuers } = context
  const call = adminGroup('Records', context)
  return [
    call({
      method: 'GET',
      path: '/audit',
      permission: 'audit:read',
      id: 'queryAudit',
      summary: 'Query audit events',
      description:
        'Events arrive one or two seconds after the decision. Operators with a tenant see the events of ' +
        'callers of their tenant.',
      query: auditQuerySchema,
      response: 'Events, newest first.',
      reply: () => z.strictObject({ events: z.array(auditEventSchema), cursor }),
      handle({ query, scope }) {
        const tenant = confinedTo(scope)
        const within = tenant === undefined ? undefined : { tenant, issuers: [...tenantIssuers] }
        return requireConfigured(auditLog).query({ ...query, ...recordedAddress(query) }, within)
      },
    }),
    call({
      method: 'GET',
      path: '/audit/chain',
      permission: 'audit:verify',
      id: 'readAuditChain',
      summary: 'Read the audit trail with its hashes',
      description:
        'For `portcullis audit verify`, which computes the hashes again and does not rely on the ' +
        'gateway to verify them. Operators with a tenant are refused (403).',
      query: chainQuerySchema,
      response: 'Rows as they are stored, in the order of the chain.',
      reply: () => chainPageSchema,
      handle({ query, scope }) {
        // The chain has the events of every tenant.
        refuseTenant(scope)
        return requireConfigured(chainLog).read(query)
      },
    }),
    call({
      method: 'GET',
      path: '/keys',
      permission: 'keys:list',
      id: 'listKeys',
      summary: 'List the signing keys',
      response: 'The public data of the keys, in the order of the configuration.',
      reply: () => z.strictObject({ keys: z.array(keyView()) }),
      handle: () => ({ keys: signingKeys.map((key) => keyViewOf(key, signingKeys, now())) }),
    }),
    call({
      method: 'POST',
      path: '/audit/erasures',
      permission: 'audit:erase',
      id: 'createErasure',
      summary: 'Erase a subject from the audit trail',
      description:
        'Events keep the decision, its reason, its time, and their hashes. The subject, its ' +
        'address, and values that link the event to other records are erased. The audit Worker ' +
        'erases them in the database and in its export; read the erasure to see its state. Later ' +
        'requests of the subject are recorded again. Operators cannot erase themselves. An operator with ' +
        'a tenant erases a subject from the events of its tenant.',
      body: newErasureSchema,
      example: { subject: 'alice', issuer: 'https://idp.example.com' },
      status: 201,
      response: 'The erasure is ordered.',
      reply: erasureView,
      async handle({ body: { tenant, ...person }, operator, scope, changed }) {
        const body = { ...person, tenant: selectTenant(scope, tenant) }
        const isConfined = confinedTo(scope) !== undefined
        if (isConfined) ownersWithin(scope, [body.issuer])
        // Otherwise the trail could no longer show who ordered the erasure.
        if (body.subject === operator.subject && body.issuer === operator.issuer)
          throw inputRefused('body', '/subject', 'must not be the caller: use another operator')
        const erasure = await requireConfigured(auditErasures).order(
          body,
          isConfined ? 'tenant' : undefined,
        )
        // The erasure is ordered from here on, whatever happens to this request.
        changed('audit.erase', erasure.id)
        await overflowRedaction.redact(body)
        return erasureViewOf(erasure)
      },
    }),
    call({
      method: 'GET',
      path: '/audit/erasures/:id',
      permission: 'audit:erase',
      id: 'getErasure',
      summary: 'Read the state of an erasure',
      params: idParams,
      response: 'The erasure, without the subject.',
      reply: erasureView,
      async handle({ params: { id }, scope }) {
        const erasure = await withinTenant(scope, requireConfigured(auditErasures).find(id))
        const isVisible = confinedTo(scope) === undefined || erasure.owner === 'tenant'
        return erasureViewOf(await existing(isVisible ? erasure : undefined))
      },
    }),
  ]
}

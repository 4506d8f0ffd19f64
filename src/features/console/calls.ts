/** Operators' calls that summarize: the policy, the decisions, and what is known of a caller. */

import * as z from 'zod/mini'
import { createBanList } from '../../access/abuse/redis/bans.ts'
import { createOverrideList } from '../../access/admission/redis/limit-overrides.ts'
import { createRevocationLog } from '../../access/revocation/redis/revocation-log.ts'
import { createApiKeys } from '../../access/tokens/redis/api-keys.ts'
import { auditEventSchema } from '../../audit/event-schema.ts'
import { auditQuerySchema } from '../../audit/log.ts'
import { createAuditLog } from '../../audit/sql/audit-events.ts'
import { trailOf } from '../../audit/sql/d1/database.ts'
import { createAuditSummary } from '../../audit/sql/summary.ts'
import { MAX_SUMMARY_DAYS, summarySchema } from '../../audit/summary.ts'
import type { FeatureParts } from '../../gateway/feature.ts'
import { addressGroup } from '../../middleware/client-address.ts'
import { type AdminCall, adminGroup } from '../../routes/admin/call.ts'
import type { CallFrame } from '../../routes/admin/frame.ts'
import {
  createdByName,
  inputRefused,
  requireConfigured,
  time,
  timeOf,
  timeOrNull,
} from '../../routes/admin/input.ts'
import { type OperatorCall, permissionOf } from '../../routes/admin/permissions.ts'
import { confinedTo, listedFor, refuseTenant, type TenantScope } from '../../routes/admin/tenant.ts'
import { resolvePeriod } from '../../routes/admin/usage-period.ts'
import { describe } from '../../validators/checks.ts'
import { name } from '../../validators/names.ts'
import type { ListFilter, Page, PageQuery } from '../../validators/page.ts'
import { integer } from '../../validators/schema-parts.ts'
import { createSessionStore } from '../sign-in/redis/session-store.ts'
import { cursorTime, firstEvents } from './decision-query.ts'
import { policyView, policyViewOf } from './policy-view.ts'

export const POLICY_PERMISSION = 'portcullis:policy:read'
export const CALLER_PERMISSION = 'portcullis:callers:read'

export const KINDS = ['subject', 'client', 'tenant', 'address', 'key'] as const
export type CallerKind = (typeof KINDS)[number]

const callerQuery = z.strictObject({
  kind: z.enum(KINDS),
  value: name(256),
})

const record = {
  id: z.string(),
  value: z.string(),
  tenant: z.nullable(z.string()),
  createdAt: time,
  createdBy: z.string(),
  createdByName,
}
export const callerView = z.strictObject({
  kind: z.enum(KINDS),
  value: z.string().check(describe('normalized: an IPv6 address is its /64')),
  bans: z.array(z.strictObject({ ...record, reason: z.nullable(z.string()), expiresAt: time })),
  revocations: z.array(
    z.strictObject({ ...record, kind: z.string(), reason: z.nullable(z.string()) }),
  ),
  overrides: z.array(
    z.strictObject({
      ...record,
      limit: z.string(),
      requests: integer(),
      reason: z.nullable(z.string()),
      expiresAt: z.nullable(time).check(describe('null: in force until it is removed')),
    }),
  ),
  limits: z
    .nullable(
      z.array(
        z.strictObject({
          name: z.string(),
          limit: z.nullable(integer()).check(describe('null: as the plan of the caller says')),
          windowSeconds: integer(),
        }),
      ),
    )
    .check(describe('limits of the policy that count this kind of caller; null: no permission')),
  keys: z.array(
    z.strictObject({ id: z.string(), name: z.string(), createdAt: time, isRevoked: z.boolean() }),
  ),
  sessions: z
    .nullable(
      z.array(
        z.strictObject({
          issuer: z.string(),
          createdAt: time,
          userAgent: z.nullable(z.string()),
          city: z.nullable(z.string()).check(describe('near the login, if it is known')),
          country: z.nullable(z.string()).check(describe('ISO 3166-1, if it is known')),
        }),
      ),
    )
    .check(describe('browser sessions of a subject; null for operators with a tenant')),
  events: z
    .nullable(z.array(auditEventSchema))
    .check(describe('the newest decisions; null: no audit database, or no permission')),
  eventsSince: z
    .nullable(time)
    .check(describe('`events` has each decision after this time; null: all of the trail')),
  isComplete: z
    .boolean()
    .check(
      describe(
        'false: a list other than `events` has more than was read, or needs another permission',
      ),
    ),
})
export type CallerView = z.infer<typeof callerView>

const querySchema = z.omit(auditQuerySchema, { cursor: true, limit: true })

const EVENTS = 50
const PAGE = 200
const DAY_MS = 86_400_000
/** Pages of a list that one call reads. */
const MAX_PAGES = 5

interface OwnedRecord {
  readonly id: string
  readonly value: string
  readonly tenant?: string | undefined
  readonly createdAtSeconds: number
  readonly createdBy: string
  readonly createdByName?: string | undefined
}

const recordOf = ({ id, value, tenant, createdBy, ...rest }: OwnedRecord) => ({
  ...{ id, value, tenant: tenant ?? null, createdBy, createdAt: timeOf(rest.createdAtSeconds) },
  ...(rest.createdByName !== undefined && { createdByName: rest.createdByName }),
})

export function consoleCalls(parts: FeatureParts): (frame: CallFrame) => readonly AdminCall[] {
  const { redis, now, publicUrl, issuers } = parts
  const auditDb = parts.auditDb && trailOf(parts.auditDb)
  const auditLog = auditDb && createAuditLog(auditDb)
  const summaries = auditDb && createAuditSummary(auditDb)
  const bans = createBanList(redis, now)
  const revocations = createRevocationLog(redis, now)
  const overrides = createOverrideList(redis, now)
  const apiKeys = createApiKeys({ redis, publicUrl, now, endedSeconds: 0 })
  const sessions = createSessionStore(redis, now)

  return function callsOf(frame) {
    const call = adminGroup('Console', frame)
    const withinOf = (scope: TenantScope) => {
      const tenant = confinedTo(scope)
      return tenant === undefined ? undefined : { tenant, issuers: [...frame.tenantIssuers] }
    }
    return [
      call({
        method: 'GET',
        path: '/policy',
        permission: POLICY_PERMISSION,
        id: 'readPolicy',
        summary: 'Read the effective policy',
        description: 'With the defaults filled in. It contains no secret.',
        response: 'The policy of this gateway.',
        reply: () => policyView,
        handle({ scope }) {
          refuseTenant(scope)
          return policyViewOf(parts)
        },
      }),
      call({
        method: 'GET',
        path: '/audit/summary',
        permission: 'audit:read',
        id: 'summarizeAudit',
        summary: 'Summarize decisions',
        description:
          'Without filters, and with those of decision, reason, route and status, counts every event of the period, in ' +
          `whole minutes. A period has at most ${MAX_SUMMARY_DAYS} days. ` +
          'With other filters, counts at most 12,500 events, the newest first: `countedSince` says from ' +
          'when on the counts are complete. Operators with a tenant see the events of callers of their tenant.',
        query: querySchema,
        response: 'Counts by time, outcome, reason, route and caller.',
        reply: () => summarySchema,
        handle({ query, scope }) {
          const { since, until, address, ...filters } = query
          const wanted = { ...filters, limit: PAGE, ...(address && { address: groupOf(address) }) }
          const within = withinOf(scope)
          const period = resolvePeriod({ since, until }, now())
          if (period.untilMs - period.sinceMs > MAX_SUMMARY_DAYS * DAY_MS)
            throw inputRefused(
              'query',
              '/since',
              `must be at most ${MAX_SUMMARY_DAYS} days before the end of the period`,
            )
          return requireConfigured(summaries).summarize(wanted, period, within)
        },
      }),
      call({
        method: 'GET',
        path: '/callers',
        permission: CALLER_PERMISSION,
        id: 'readCaller',
        summary: 'Read what is known of a caller',
        description:
          'The bans, revocations, overrides, API keys, sessions and newest decisions of a subject, a client, a tenant, an ' +
          'address or an API key (its id). Each part needs the permission of its own list as well: without it, the ' +
          'part is empty. Operators with a tenant see what concerns their tenant.',
        query: callerQuery,
        response: 'What is known of the caller.',
        reply: () => callerView,
        async handle({ query: { kind, value: named }, scope }) {
          const value = kind === 'address' ? groupOf(named) : named
          const within = withinOf(scope)
          const isOf = (of: string | undefined) => of === kind
          const isPermitted = (permission: OperatorCall) =>
            frame.authorizer(scope.operator, permissionOf(permission))
          let isComplete = true
          async function all<Item extends Listed>(
            permission: OperatorCall,
            list: (page: PageQuery, filter?: ListFilter<Item>) => Promise<Page<Item>>,
            isWanted: (item: Item) => boolean,
            tenantOf = ({ tenant }: Item) => tenant,
          ): Promise<readonly Item[]> {
            const filter = listedFor(scope, (each: Item) => ({
              tenant: tenantOf(each),
              issuers: each.issuers ?? [],
            }))
            if (!isPermitted(permission)) {
              isComplete = false
              return []
            }
            const found: Item[] = []
            let cursor: string | undefined
            for (let page = 0; page < MAX_PAGES; page += 1) {
              const { items, cursor: next } = await list(
                { limit: PAGE, ...(cursor !== undefined && { cursor }) },
                filter,
              )
              found.push(...items.filter(isWanted))
              if (next === undefined) return found
              cursor = next
            }
            isComplete = false
            return found
          }
          async function keysOf(of: { readonly subject?: string; readonly tenant?: string }) {
            const own = within?.tenant
            if (own !== undefined && of.tenant !== undefined && of.tenant !== own) return []
            const found = await apiKeys.list(
              { limit: PAGE },
              { tenant: own, ...of, hidesOthers: own !== undefined },
            )
            if (found.cursor !== undefined) isComplete = false
            return found.items
          }
          const readsKeys = isPermitted('api-keys:list')
          if (!readsKeys) isComplete = false
          const [banned, revoked, overridden, ofSubject, own, known, page] = await Promise.all([
            all('bans:list', bans.list, (ban) => isOf(ban.kind) && ban.value === value),
            all(
              'revocations:list',
              revocations.list,
              (each) => revokes(each.kind, kind) && each.value === value,
              // Also if the platform has ordered it.
              (each) => (each.kind === 'tenant' ? each.value : each.tenant),
            ),
            all(
              'limits:list',
              overrides.list,
              (each) => limitedBy(parts, each.limit) === kind && each.value === value,
            ),
            readsKeys && (kind === 'subject' || kind === 'tenant') ? keysOf({ [kind]: value }) : [],
            kind === 'key' && readsKeys ? apiKeys.find(value) : undefined,
            kind !== 'subject' || within !== undefined
              ? undefined
              : Promise.all(
                  issuers.map(async (issuer) =>
                    (await sessions.list({ issuer, providerSubject: value })).map((each) => ({
                      ...{ issuer, createdAt: timeOf(each.createdAtSeconds) },
                      userAgent: each.userAgent ?? null,
                      city: each.city ?? null,
                      country: each.country ?? null,
                    })),
                  ),
                ),
            isPermitted('audit:read')
              ? firstEvents(async (cursor) =>
                  auditLog?.query(
                    { [kind]: value, limit: EVENTS, ...(cursor !== undefined && { cursor }) },
                    within,
                  ),
                )
              : undefined,
          ])
          const isVisible =
            own !== undefined && (within === undefined || own.tenant === within.tenant)
          const keys = isVisible ? [own] : ofSubject
          return {
            kind,
            value,
            bans: banned.map((ban) => ({
              ...recordOf(ban),
              ...{ reason: ban.reason, expiresAt: timeOf(ban.expiresAtSeconds) },
            })),
            revocations: revoked.map((each) => ({
              ...recordOf(each),
              ...{ kind: each.kind, reason: each.reason },
            })),
            overrides: overridden.map((each) => ({
              ...recordOf(each),
              ...{ limit: each.limit, requests: each.requests, reason: each.reason ?? null },
              expiresAt: timeOrNull(each.expiresAtSeconds),
            })),
            limits: isPermitted('limits:list')
              ? [...parts.policy.limits.values()]
                  .filter(({ by }) => by === kind)
                  .map(({ name, limit, windowSeconds, meter }) => ({
                    name,
                    limit: meter?.plans === undefined ? limit : null,
                    windowSeconds,
                  }))
              : null,
            keys: keys.map((key) => ({
              ...{ id: key.id, name: key.name, createdAt: timeOf(key.createdAtSeconds) },
              isRevoked: key.revokedAtSeconds !== undefined,
            })),
            sessions: known?.flat() ?? (kind === 'subject' && within === undefined ? [] : null),
            events: page === undefined ? null : [...page.events],
            eventsSince: page?.cursor === undefined ? null : cursorTime(page.cursor),
            isComplete,
          } satisfies CallerView
        },
      }),
    ]
  }
}

interface Listed {
  readonly tenant?: string | undefined
  readonly issuers?: readonly string[] | undefined
}

const groupOf = (address: string): string => addressGroup(address) ?? address

/** A revocation of a `token` names a token's id, also that of an API key. */
const revokes = (revoked: string, kind: CallerKind): boolean =>
  revoked === kind || (kind === 'key' && revoked === 'token')

const limitedBy = ({ policy }: Pick<FeatureParts, 'policy'>, limit: string) =>
  policy.limits.get(limit)?.by

/** Schemas that many calls share, and refusals of input that no schema can detect. */

import * as z from 'zod/mini'
import type { Principal } from '../../access/principal.ts'
import { Denied, Unavailable } from '../../errors.ts'
import { describe } from '../../validators/checks.ts'
import type { Owned, Owner } from '../../validators/owner.ts'
import {
  type ListFilter,
  type Page,
  type PageQuery,
  pageQuerySchema,
} from '../../validators/page.ts'
import type { TenantScope } from './scope.ts'

/** RFC 3339, UTC. */
export const time = z.iso.datetime()

export const cursor = z.optional(z.string()).check(describe('cursor of the next page'))

/** Members of a new record that name the operator who creates it. */
export const createdByOf = ({ subject, signIn }: Principal) => ({
  createdBy: subject,
  ...(signIn?.name !== undefined && { createdByName: signIn.name }),
})

export const createdByName = z
  .optional(z.string())
  .check(describe('name of the operator, if it is a person with a session; it identifies no one'))

export const createdBy = z.string().check(describe('subject of the operator'))

/** A path with an id of the gateway: a UUID, in either case. */
export const idParams = z.strictObject({ id: z.uuid().check(z.toLowerCase()) })

export const consistencyToken = z.string().check(z.regex(/^v1\.[0-9a-z]+\.[\w-]*$/))

export const timeOf = (seconds: number) => new Date(seconds * 1000).toISOString()
export const timeOrNull = (seconds: number | null) => (seconds === null ? null : timeOf(seconds))

/** Returns the refusal (422) of input that is well formed but names nothing that exists. */
export function inputRefused(where: 'params' | 'query' | 'body', path: string, message: string) {
  return new Denied({ code: 'invalid_input', errors: [{ in: where, path, message }] })
}

/** An earlier order of the same: until when it is in force or covers what was issued. Absent: not known. */
export const earlier = z
  .optional(z.nullable(z.strictObject({ until: z.nullable(time) })))
  .check(describe('of the same'))

/** Returns the result of a store. Throws `Denied` (`not_found`) if it is undefined or false. */
export async function existing<Value>(
  stored: Value | Promise<Value>,
): Promise<Exclude<Value, undefined | false>> {
  const value = await stored
  if (value === undefined || value === false) throw new Denied({ code: 'not_found' })
  return value as Exclude<Value, undefined | false>
}

/** Returns what an order finds. Absent: the store did not answer, which must not keep the order from being carried out. */
export async function found<Value>(stored: Promise<Value>): Promise<Partial<Value>> {
  try {
    return await stored
  } catch (error) {
    if (error instanceof Unavailable) return {}
    throw error
  }
}

export const earlierOf = (stored: Promise<number | null | undefined>) =>
  found(
    stored.then((until) => ({
      earlier: until === undefined ? null : { until: timeOrNull(until) },
    })),
  )

/** Throws `Unavailable` if the gateway has no audit database. */
export function requireConfigured<Log>(log: Log | undefined): Log {
  if (log === undefined) throw new Unavailable('audit_log', 'unreachable')
  return log
}

/** Members of the view of a record that has an owner. */
export const ownedView = {
  tenant: z
    .nullable(z.string())
    .check(describe('the only tenant that it concerns; null: it does not depend on a tenant')),
  owner: z
    .enum(['platform', 'tenant'])
    .check(describe('who may remove it: operators without a tenant, or also those of the tenant')),
}

export const ownedViewOf = ({ tenant, owner }: Owned) =>
  ({ tenant: tenant ?? null, owner: owner ?? 'platform' }) as const

/** Returns the schema of a record that sets a value for windows. */
export const ownerView = <Members extends z.core.$ZodLooseShape>(members: Members) =>
  z.strictObject({
    id: z.uuid(),
    ...members,
    ...ownedView,
    issuer: z
      .nullable(z.string())
      .check(describe('null for an address, and for all issuers that were trusted')),
    createdAt: time,
    createdBy,
    createdByName,
    expiresAt: z.nullable(time).check(describe('null: in force until an operator deletes it')),
  })

export function ownerViewOf<Item extends Owner>({
  createdAtSeconds,
  expiresAtSeconds,
  windows: _,
  issuers: __,
  ...record
}: Item) {
  return {
    ...record,
    ...ownedViewOf(record),
    createdAt: timeOf(createdAtSeconds),
    expiresAt: timeOrNull(expiresAtSeconds),
  }
}

interface ListingOptions<Item> {
  /** Returns the filter for an operator with a tenant; undefined for an operator without one. */
  listedFor(scope: TenantScope): ListFilter<Item> | undefined
  /** All of these items are in the reply as well. */
  readonly first?: {
    readonly name: string
    readonly items: readonly object[]
    view(): z.core.$ZodType
  }
}

/** Returns the input, the reply and the handler of a call that lists records as `name`. */
export const listing = <Item>(
  name: string,
  list: (page: PageQuery, filter?: ListFilter<Item>) => Promise<Page<Item>>,
  view: () => z.core.$ZodType,
  viewOf: (item: Item) => object,
  { listedFor, first }: ListingOptions<Item>,
) => ({
  query: pageQuerySchema,
  reply: () =>
    z.strictObject({
      ...(first && { [first.name]: z.array(first.view()) }),
      [name]: z.array(view()),
      cursor,
    }),
  async handle({ query, scope }: { readonly query: PageQuery; readonly scope: TenantScope }) {
    const { items, ...rest } = await list(query, listedFor(scope))
    return { ...(first && { [first.name]: first.items }), [name]: items.map(viewOf), ...rest }
  },
})

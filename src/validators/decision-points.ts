/** Environment variables of external policy decision points. */

import * as z from 'zod/mini'
import { superRefine } from './checks.ts'
import { type Config, type FeatureVariables, needs, readVariables } from './environment.ts'
import { converted } from './schema-parts.ts'
import { callTimeout, httpUrl, isPrivateLine, json } from './variables.ts'

export const DEFAULT_AUTHORITY_TIMEOUT_MS = 250

/** Without a trailing slash. An attacker on an http line could allow everything. */
const decisionPointUrl = converted(
  httpUrl.check(
    z.refine(isPrivateLine, 'must be https, unless it is on a loopback address'),
    z.refine((url) => !/[?#]/.test(url), 'must have no query or fragment'),
  ),
  (url) => url.replace(/\/+$/, ''),
)

/** Sent as `Authorization: Bearer`. */
const decisionPointToken = z
  .string()
  .check(z.regex(/^[\x21-\x7e]+$/, 'must be ASCII without spaces and control characters'))

const ulid = z.string().check(z.regex(/^[0-9A-HJKMNP-TV-Z]{26}$/))
const openfgaStore = z.strictObject({ store: ulid, model: z.optional(ulid) })
const storeEntry = z.union(
  [converted(ulid, (store): z.output<typeof openfgaStore> => ({ store })), openfgaStore],
  { error: 'must be the id of a store, or { store, model }; ids have 26 characters (ULID)' },
)

/** An OpenFGA store, and the model for decisions; default the newest one. */
export type OpenfgaStore = z.output<typeof openfgaStore>

/** One value for each tenant; `''` is for callers without a tenant. */
const byTenant = <Value extends z.core.$ZodType>(value: Value) =>
  converted(
    z
      .record(z.string().check(z.maxLength(256)), value, {
        error: 'must be an object with one member per tenant',
      })
      .check(
        z.refine((tenants) => Object.keys(tenants).length > 0, 'must have at least one entry'),
      ),
    (tenants): ReadonlyMap<string, z.output<Value>> => new Map(Object.entries(tenants)),
  )

/** Each tenant must have its own store. Otherwise two tenants would share their tuples. */
const openfgaStores = byTenant(storeEntry).check(
  superRefine((stores, context) => {
    const seen = new Set<string>()
    for (const [tenant, { store }] of stores) {
      const message = 'duplicates the store of another tenant'
      if (seen.has(store)) context.addIssue({ code: 'custom', path: [tenant], message })
      seen.add(store)
    }
  }),
)

/** How a permission with a `context` in the response is treated. */
const contextHandling = z.enum(['refuse', 'ignore'], { error: 'must be refuse or ignore' })
export type ContextHandling = z.output<typeof contextHandling>

export const decisionPointVariables = {
  shape: {
    OPENFGA_URL: z.optional(decisionPointUrl),
    OPENFGA_STORES: z.optional(z.pipe(json, openfgaStores)),
    OPENFGA_TOKEN: z.optional(decisionPointToken),
    /** The key `*` is for all tenants that are not listed. */
    AUTHZEN_URLS: z.optional(z.pipe(json, byTenant(decisionPointUrl))),
    AUTHZEN_TOKEN: z.optional(decisionPointToken),
    AUTHZEN_CONTEXT: z.optional(contextHandling),
    AUTHORITY_TIMEOUT_MS: z.optional(callTimeout),
  },
  checks: [
    needs('OPENFGA_URL', 'OPENFGA_STORES'),
    needs('OPENFGA_STORES', 'OPENFGA_URL'),
    needs('OPENFGA_TOKEN', 'OPENFGA_URL'),
    needs('AUTHZEN_TOKEN', 'AUTHZEN_URLS'),
  ],
} satisfies FeatureVariables

/** Returns the servers. Undefined if they are not configured. */
export function readDecisionPoints(config: Pick<Config, 'variables'>) {
  const values = readVariables(config, decisionPointVariables)
  const { OPENFGA_URL: url, OPENFGA_STORES: stores, AUTHZEN_URLS: urls, ...env } = values
  return {
    timeoutMs: env.AUTHORITY_TIMEOUT_MS ?? DEFAULT_AUTHORITY_TIMEOUT_MS,
    openfga:
      url === undefined || stores === undefined
        ? undefined
        : { url, stores, token: env.OPENFGA_TOKEN },
    // A conditional permission must not count if nothing checks its condition.
    authzen: urls && {
      urls,
      token: env.AUTHZEN_TOKEN,
      context: env.AUTHZEN_CONTEXT ?? 'refuse',
    },
  }
}

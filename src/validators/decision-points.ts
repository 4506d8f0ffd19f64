/** Configuration of external policy decision points: where they are, and which tenants use them. */
import { httpUrl, isPrivateLine } from './variables.ts'
import * as z from './zod.ts'

/** An OpenFGA store, and the model for decisions; default the newest one. */
export interface OpenfgaStore {
  readonly store: string
  readonly model?: string | undefined
}

export interface OpenfgaConfig {
  /** Without a trailing slash. */
  readonly url: string
  readonly token: string | undefined
  /** By tenant; '' is for callers without a tenant. */
  readonly stores: ReadonlyMap<string, OpenfgaStore>
}

/** How a permission with a `context` in the response is treated. */
export type ContextHandling = 'refuse' | 'ignore'

export interface AuthzenConfig {
  /** By tenant; '' is for callers without a tenant, and `*` for all tenants that are not listed. */
  readonly urls: ReadonlyMap<string, string>
  readonly token: string | undefined
  readonly context: ContextHandling
}

export interface DecisionPointsConfig {
  /** Timeout of a whole call. */
  readonly timeoutMs: number
  readonly openfga: OpenfgaConfig | undefined
  readonly authzen: AuthzenConfig | undefined
}

export const DEFAULT_AUTHORITY_TIMEOUT_MS = 250

/** The format of OpenFGA's identifiers. */
const ULID = /^[0-9A-HJKMNP-TV-Z]{26}$/
const MAX_TENANT_CHARS = 256

/**
 * URL of a policy decision point, without a trailing slash. Must be https unless it is on a
 * loopback address, because an attacker on the network could otherwise allow everything.
 */
export const decisionPointUrl = z.pipe(
  httpUrl.check(
    z.refine(isPrivateLine, 'must be https, unless it is on a loopback address'),
    z.refine((url) => !/[?#]/.test(url), 'must have no query or fragment'),
  ),
  z.transform((url) => url.replace(/\/+$/, '')),
)

/** Sent as `Authorization: Bearer`. */
export const decisionPointToken = z
  .string()
  .check(z.regex(/^[\x21-\x7e]+$/, 'must be ASCII without spaces and control characters'))

const ulid = z.string().check(z.regex(ULID))
const storeEntry = z.union(
  [
    z.pipe(
      ulid,
      z.transform((store): OpenfgaStore => ({ store })),
    ),
    z.strictObject({ store: ulid, model: z.optional(ulid) }),
  ],
  { error: 'must be the id of a store, or { store, model }; ids have 26 characters (ULID)' },
)

/**
 * Parses an object with one value for each tenant as a map. Names that no tenant can have are
 * harmless.
 */
const byTenant = <Value extends z.core.$ZodType>(value: Value) =>
  z.pipe(
    z
      .record(z.string().check(z.maxLength(MAX_TENANT_CHARS)), value, {
        error: 'must be an object with one member per tenant',
      })
      .check(
        z.refine((tenants) => Object.keys(tenants).length > 0, 'must have at least one entry'),
      ),
    z.transform(
      (tenants): ReadonlyMap<string, z.output<Value>> => new Map(Object.entries(tenants)),
    ),
  )

/** Each tenant must have its own store. Otherwise two tenants would share their tuples. */
export const openfgaStores = byTenant(storeEntry).check(
  z.superRefine((stores, context) => {
    const seen = new Set<string>()
    for (const [tenant, { store }] of stores) {
      if (seen.has(store))
        context.addIssue({
          code: 'custom',
          path: [tenant],
          message: 'duplicates the store of another tenant',
        })
      seen.add(store)
    }
  }),
)

export const authzenUrls = byTenant(decisionPointUrl)

export const authzenContext = z.enum(['refuse', 'ignore'], { error: 'must be refuse or ignore' })

type Needs = readonly [
  check: (env: Readonly<Record<string, unknown>>) => boolean,
  params: { readonly error: string; path: string[]; readonly when: () => true },
]

/** Returns the arguments of a refinement of the environment: `given` requires `needed`. */
export const needs = (given: string, needed: string): Needs => [
  (env) => env?.[given] === undefined || env[needed] !== undefined,
  // Reported with all other mistakes, not after they are corrected.
  { error: `is missing; ${given} requires it`, path: [needed], when: () => true },
]

interface DecisionPointVariables {
  readonly OPENFGA_URL?: string | undefined
  readonly OPENFGA_STORES?: OpenfgaConfig['stores'] | undefined
  readonly OPENFGA_TOKEN?: string | undefined
  readonly AUTHZEN_URLS?: AuthzenConfig['urls'] | undefined
  readonly AUTHZEN_TOKEN?: string | undefined
  readonly AUTHZEN_CONTEXT?: ContextHandling | undefined
  readonly AUTHORITY_TIMEOUT_MS?: number | undefined
}

/** Returns the policy decision points of a checked environment. */
export function decisionPointsOf({
  OPENFGA_URL,
  OPENFGA_STORES,
  AUTHZEN_URLS,
  ...env
}: DecisionPointVariables): DecisionPointsConfig {
  return {
    timeoutMs: env.AUTHORITY_TIMEOUT_MS ?? DEFAULT_AUTHORITY_TIMEOUT_MS,
    openfga:
      OPENFGA_URL === undefined || OPENFGA_STORES === undefined
        ? undefined
        : { url: OPENFGA_URL, stores: OPENFGA_STORES, token: env.OPENFGA_TOKEN },
    authzen:
      AUTHZEN_URLS === undefined
        ? undefined
        : {
            urls: AUTHZEN_URLS,
            token: env.AUTHZEN_TOKEN,
            // A conditional permission must not count if nothing checks its condition.
            context: env.AUTHZEN_CONTEXT ?? 'refuse',
          },
  }
}

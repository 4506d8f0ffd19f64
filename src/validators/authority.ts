/** External authorities over relations: where they are, and which tenants' questions go where. */
import * as z from 'zod'
import { httpUrl, isPrivateLine } from './issuer.ts'

/** A store of OpenFGA, and the model in it to decide by; without one, the newest. */
export interface OpenfgaStore {
  readonly store: string
  readonly model?: string | undefined
}

export interface OpenfgaConfig {
  /** No trailing slash. */
  readonly url: string
  readonly token: string | undefined
  /** By tenant; '' is for callers without one. */
  readonly stores: ReadonlyMap<string, OpenfgaStore>
}

/** What becomes of a permission that comes with a `context`. */
export type ContextHandling = 'refuse' | 'ignore'

export interface AuthzenConfig {
  /** By tenant; '' is for callers without one, `*` for everybody who is not named. */
  readonly urls: ReadonlyMap<string, string>
  readonly token: string | undefined
  readonly context: ContextHandling
}

export interface AuthoritiesConfig {
  /** For a whole call. */
  readonly timeoutMs: number
  readonly openfga: OpenfgaConfig | undefined
  readonly authzen: AuthzenConfig | undefined
}

export const DEFAULT_AUTHORITY_TIMEOUT_MS = 250

/** As OpenFGA writes its identifiers. */
const ULID = /^[0-9A-HJKMNP-TV-Z]{26}$/
const MAX_TENANT_CHARS = 256

/**
 * Who could write in its place could allow everything: https, unless it is on a loopback address.
 * No trailing slash is left.
 */
export const authorityUrl = httpUrl
  .refine(isPrivateLine, 'must be https, unless it is on a loopback address')
  .refine((url) => !/[?#]/.test(url), 'must have no query or fragment')
  .transform((url) => url.replace(/\/+$/, ''))

/** Sent as `Authorization: Bearer`. */
export const authorityToken = z
  .string()
  .regex(/^[\x21-\x7e]+$/, 'must be ASCII without spaces and control characters')

const ulid = z.string().regex(ULID)
const storeEntry = z.union(
  [
    ulid.transform((store): OpenfgaStore => ({ store })),
    z.strictObject({ store: ulid, model: ulid.optional() }),
  ],
  { error: 'must be the id of a store, or { store, model }; ids have 26 characters (ULID)' },
)

/** An object of what each tenant has, as a map. Names that a tenant cannot have do no harm. */
const byTenant = <Value extends z.ZodType>(value: Value) =>
  z
    .record(z.string().max(MAX_TENANT_CHARS), value, { error: 'must be an object by tenant' })
    .refine((tenants) => Object.keys(tenants).length > 0, 'must have an entry')
    .transform((tenants): ReadonlyMap<string, z.output<Value>> => new Map(Object.entries(tenants)))

/** Two tenants in one store would share their tuples. */
export const openfgaStores = byTenant(storeEntry).superRefine((stores, context) => {
  const seen = new Set<string>()
  for (const [tenant, { store }] of stores) {
    if (seen.has(store))
      context.addIssue({
        code: 'custom',
        path: [tenant],
        message: 'has the store of another tenant',
      })
    seen.add(store)
  }
})

export const authzenUrls = byTenant(authorityUrl)

export const authzenContext = z.enum(['refuse', 'ignore'], { error: 'must be refuse or ignore' })

type Needs = readonly [
  check: (env: Readonly<Record<string, unknown>>) => boolean,
  params: { readonly error: string; path: string[]; readonly when: () => true },
]

/** Arguments of a refinement of the environment: `given` is of no use without `needed`. */
export const needs = (given: string, needed: string): Needs => [
  (env) => env?.[given] === undefined || env[needed] !== undefined,
  // Told together with every other mistake, not after they are mended.
  { error: `is missing, and ${given} is given`, path: [needed], when: () => true },
]

interface AuthorityVariables {
  readonly OPENFGA_URL?: string | undefined
  readonly OPENFGA_STORES?: OpenfgaConfig['stores'] | undefined
  readonly OPENFGA_TOKEN?: string | undefined
  readonly AUTHZEN_URLS?: AuthzenConfig['urls'] | undefined
  readonly AUTHZEN_TOKEN?: string | undefined
  readonly AUTHZEN_CONTEXT?: ContextHandling | undefined
  readonly AUTHORITY_TIMEOUT_MS?: number | undefined
}

/** The authorities of an environment that has been checked. */
export function authoritiesOf({
  OPENFGA_URL,
  OPENFGA_STORES,
  AUTHZEN_URLS,
  ...env
}: AuthorityVariables): AuthoritiesConfig {
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
            // A permission on terms that nobody meets is none.
            context: env.AUTHZEN_CONTEXT ?? 'refuse',
          },
  }
}

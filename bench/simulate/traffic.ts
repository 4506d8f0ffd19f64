/** The callers of a fleet: how many, how often they call, and over how many connections. */
import type { Principal } from '../../src/access/principal.ts'

/** A kind of caller. The shares of the kinds add up to 1. All are assumptions about a fleet. */
export interface Kind {
  readonly id: 'services' | 'people' | 'greedy'
  readonly title: string
  /** Part of all requests. */
  readonly share: number
  /** Requests of one caller a second. */
  readonly rate: number
  /** Processes that one caller has connections to. */
  readonly connections: number
}

/** The traffic of the report. */
export const KINDS: readonly Kind[] = [
  { id: 'services', title: 'services', share: 0.82, rate: 50, connections: 4 },
  { id: 'people', title: 'people', share: 0.1, rate: 0.2, connections: 1 },
  { id: 'greedy', title: 'services above their limit', share: 0.08, rate: 150, connections: 4 },
]

/** Requests of one tenant a second. */
export const TENANT_RATE = 500

export interface Caller {
  readonly kind: Kind
  readonly subject: string
  /** Undefined: the limits do not count tenants. */
  readonly tenant: string | undefined
  /** Random numbers in [0, 1), each of which selects a process. */
  readonly places: readonly number[]
}

/** Returns the number of callers of a kind in traffic of `rate` requests a second, at least one. */
export const callersOf = (kind: Kind, rate: number): number =>
  Math.max(1, Math.round((rate * kind.share) / kind.rate))

/** Returns the number of tenants in traffic of `rate` requests a second, at least one. */
export const tenantsOf = (rate: number): number => Math.max(1, Math.round(rate / TENANT_RATE))

export const subjectOf = (kind: Kind, index: number): string => `${kind.id}-${index}`
export const tenantOf = (index: number): string => `tenant-${index}`

/**
 * Returns the callers of whole tenants that together send `rate` requests a second. A caller of the
 * sample has the same windows, processes and times as it has in the fleet.
 */
export function sampleOf(
  kinds: readonly Kind[],
  rate: number,
  hasTenants: boolean,
  random: () => number,
): Caller[] {
  const tenants = tenantsOf(rate)
  return kinds.flatMap((kind) =>
    Array.from({ length: callersOf(kind, rate) }, (_, index) => ({
      kind,
      subject: subjectOf(kind, index),
      tenant: hasTenants ? tenantOf(index % tenants) : undefined,
      places: Array.from({ length: kind.connections }, random),
    })),
  )
}

export const ISSUER = 'https://idp.example.com'
/** Characters of a hash in base64url. */
const HASH = 43

/** Returns the caller of a token. Each `login` has another token. */
export function principalOf(subject: string, tenant: string | undefined, login: number): Principal {
  return {
    issuer: ISSUER,
    tokenIssuer: ISSUER,
    subject,
    tenant,
    client: 'shop-app',
    session: undefined,
    roles: ['reader'],
    scopes: [],
    tokenId: `${subject}-${login}`,
    tokenIdHash: `${subject}-${login}-`.padEnd(HASH, '0'),
    confirmation: undefined,
    issuedAtSeconds: 0,
    expiresAtSeconds: Number.POSITIVE_INFINITY,
  }
}

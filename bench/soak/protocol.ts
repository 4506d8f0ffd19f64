/** What the soak and the process of its surroundings say to each other. */
import type { Fault } from '../../dev/fault-proxy/fault.ts'
import type { Proxied } from './faults.ts'

/** The number that a request carries, and who the gateway says has sent it (empty: nobody). */
export type Arrival = readonly [number: number, subject: string, method: string, timeMs: number]

export interface SurroundingsReady {
  readonly redisKind: string
  readonly urls: Readonly<Record<Proxied, string>>
}

export type Question =
  | { readonly kind: 'fault'; readonly at: Proxied; readonly fault: Fault }
  | { readonly kind: 'arrivals' }

/** Carries the number of a request through the gateway. */
export const NUMBER_HEADER = 'x-soak-number'

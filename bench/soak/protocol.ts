/** Messages between the soak and the process of its surroundings. */
import type { Fault } from '../../dev/fault-proxy/fault.ts'
import type { Proxied } from './faults.ts'

/** A request at the origin: its number and the subject that the gateway sent (empty: none). */
export type Arrival = readonly [number: number, subject: string, method: string, timeMs: number]

export interface SurroundingsReady {
  readonly redisKind: string
  readonly urls: Readonly<Record<Proxied, string>>
}

export type Question =
  | { readonly kind: 'fault'; readonly at: Proxied; readonly fault: Fault }
  | { readonly kind: 'arrivals' }

/** Header with the number of a request. */
export const NUMBER_HEADER = 'x-soak-number'

/** What a fault proxy tells of itself. Plain data. */
import type { Fault } from './fault.ts'

/** Octets so far, over all connections. */
export interface Traffic {
  readonly fromClients: number
  readonly toTarget: number
  readonly fromTarget: number
  readonly toClients: number
}

/** Connections so far, and those that are open. Refused ones never were. */
export interface Connections {
  readonly accepted: number
  readonly open: number
}

export interface FaultProxyState {
  readonly fault: Fault
  readonly connections: Connections
  readonly bytes: Traffic
}

/** The state that a fault proxy reports. Plain data. */
import type { Fault } from './fault.ts'

/** Total bytes of all connections. */
export interface Traffic {
  readonly fromClients: number
  readonly toTarget: number
  readonly fromTarget: number
  readonly toClients: number
}

/** Number of all accepted connections, and of open ones. Refused connections do not count. */
export interface Connections {
  readonly accepted: number
  readonly open: number
}

export interface FaultProxyState {
  readonly fault: Fault
  readonly connections: Connections
  readonly bytes: Traffic
}

/** What a fault proxy counts. Plain data. */

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

/** One request of a suite, as data. */
export interface Case {
  /** The row of the table. */
  readonly group: string
  /** Whether the gateway should refuse it. */
  readonly isAttack: boolean
  readonly method: string
  /** The request target after the path of the route, as it is sent. */
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  /** For the list of wrong decisions. */
  readonly name: string
}

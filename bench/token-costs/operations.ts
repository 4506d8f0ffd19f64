/** What is measured of tokens inside an isolate, without HTTP around each. */

export const ALGORITHMS = ['ES256', 'RS256', 'EdDSA'] as const
export type Algorithm = (typeof ALGORITHMS)[number]

/** Does nothing as often as it is asked to: what a batch costs by itself. */
export const NOTHING = 'nothing'
/** Not measured: says which forged credentials each verifier refuses. */
export const FORGERIES = 'forgeries'

export const OPERATION_IDS = [
  'uuid',
  'issue-opaque',
  'issue-opaque-redis',
  'issue-ES256',
  'issue-RS256',
  'issue-EdDSA',
  'verify-opaque',
  'verify-opaque-redis',
  'verify-ES256',
  'verify-RS256',
  'verify-EdDSA',
  'recall-opaque',
  'recall-jwt',
] as const
export type OperationId = (typeof OPERATION_IDS)[number]

export interface Operation {
  /** For peers, and in results. */
  readonly id: OperationId
  /** In tables. */
  readonly title: string
  /** The gateway takes what it issues. */
  readonly opens: boolean
}

export const OPERATIONS: readonly Operation[] = [
  { id: 'uuid', title: 'make two UUIDv4: id, token', opens: false },
  { id: 'issue-opaque', title: 'issue opaque, not stored', opens: false },
  { id: 'issue-opaque-redis', title: 'issue opaque, in Redis', opens: true },
  { id: 'issue-ES256', title: 'issue ES256', opens: true },
  { id: 'issue-RS256', title: 'issue RS256 (2048)', opens: true },
  { id: 'issue-EdDSA', title: 'issue EdDSA', opens: true },
  { id: 'verify-opaque', title: 'verify opaque, record at hand', opens: false },
  { id: 'verify-opaque-redis', title: 'verify opaque, from Redis', opens: false },
  { id: 'verify-ES256', title: 'verify ES256, cold', opens: false },
  { id: 'verify-RS256', title: 'verify RS256 (2048), cold', opens: false },
  { id: 'verify-EdDSA', title: 'verify EdDSA, cold', opens: false },
  { id: 'recall-opaque', title: 'verify opaque, cached', opens: false },
  { id: 'recall-jwt', title: 'verify JWT, cached', opens: false },
]

/** The caller whose tokens the operations make, and must find in those that they verify. */
export const SUBJECT = 'bench-caller'

/** What a batch answers: the last thing that the operation made or found. */
export interface BatchAnswer {
  readonly count: number
  /** A credential of an issuing operation, the subject of a verifying one. */
  readonly last: string | undefined
}

/** Path of a batch of so many. */
export function batchPath(
  id: OperationId | typeof NOTHING | typeof FORGERIES,
  count: number,
): string {
  return `/operations/${id}/${count}`
}

/** Token operations that are measured inside an isolate, and the paths of the Worker. */

export const ALGORITHMS = ['ES256', 'RS256', 'EdDSA'] as const
export type Algorithm = (typeof ALGORITHMS)[number]

/** An empty operation: measures the cost of the batch itself. */
export const NOTHING = 'nothing'
/** Not measured: returns the algorithms whose verifier refuses a forged token. */
export const FORGERIES = 'forgeries'

/** `opens`: whether the gateway accepts the issued token. */
export const OPERATIONS = [
  { id: 'uuid', title: 'create two UUIDv4: id, token', opens: false },
  { id: 'issue-opaque', title: 'issue opaque, not stored', opens: false },
  { id: 'issue-opaque-redis', title: 'issue opaque, in Redis', opens: true },
  { id: 'issue-ES256', title: 'issue ES256', opens: true },
  { id: 'issue-RS256', title: 'issue RS256 (2048)', opens: true },
  { id: 'issue-EdDSA', title: 'issue EdDSA', opens: true },
  { id: 'verify-opaque', title: 'verify opaque, record in memory', opens: false },
  { id: 'verify-opaque-redis', title: 'verify opaque, from Redis', opens: false },
  { id: 'verify-ES256', title: 'verify ES256, cold', opens: false },
  { id: 'verify-RS256', title: 'verify RS256 (2048), cold', opens: false },
  { id: 'verify-EdDSA', title: 'verify EdDSA, cold', opens: false },
  { id: 'recall-opaque', title: 'verify opaque, cached', opens: false },
  { id: 'recall-jwt', title: 'verify JWT, cached', opens: false },
] as const
export type Operation = (typeof OPERATIONS)[number]
export type OperationId = Operation['id']

export const SUBJECT = 'bench-caller'

export interface BatchAnswer {
  readonly count: number
  /** A credential of an issuing operation, the subject of a verifying one. */
  readonly last: string | undefined
}

/** Returns the path of a batch of `count` operations. */
export function batchPath(
  id: OperationId | typeof NOTHING | typeof FORGERIES,
  count: number,
): string {
  return `/operations/${id}/${count}`
}

/** Path of validation with the shipped token cache. */
export const VALIDATION_PATH = '/validation'
/** Path of validation without a cache: every token is new. */
export const COLD_VALIDATION_PATH = '/validation/cold'

/** Returns the expected body: the subject, and whether the token was cached. */
export function validationAnswer(subject: string, isCached: boolean): string {
  return isCached ? `${subject}, cached` : subject
}

/** Distance of the changed character from the end. The last bits of a signature may be unused. */
const FORGED_FROM_END = 10

/** Returns `text` with another character in its signature or its random part. */
export function forged(text: string): string {
  const at = text.length - FORGED_FROM_END
  return text.slice(0, at) + (text[at] === 'a' ? 'b' : 'a') + text.slice(at + 1)
}

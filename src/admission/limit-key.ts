/** Names of windows: which limit counts, and whose requests. */
import { keyPart } from './key.ts'

/** What of a caller a limit can count by, without asking a function. */
export type LimitScope = 'subject' | 'client' | 'tenant' | 'address'

/** The part of a rule that names its windows. */
export interface WindowRule {
  readonly name: string
  /** A function's windows are named by what it returned. */
  readonly by: LimitScope | ((...of: never) => string)
}

/** Whose window. */
export interface WindowOwner {
  /**
   * Of a subject or a tenant, who vouches for it (`Principal.issuer`); of a client, who issued its
   * tokens (`Principal.tokenIssuer`). Not looked at for addresses and functions.
   */
  readonly issuer: string
  /** The subject, client, tenant, normalised address, or what the function returned. */
  readonly value: string
}

/**
 * The key of one window of a limit, as `LimitRequest.key` has it: `<name>:address:<address>`,
 * `<name>:custom:<value>`, or `<name>:<by>:<issuer>:<value>`, each part a `keyPart`. A promise only
 * where a part is so long that it has to be hashed.
 */
export function limitKeyOf(
  { name, by }: WindowRule,
  { issuer, value }: WindowOwner,
): string | Promise<string> {
  if (by === 'address') return joined(`${name}:address`, keyPart(value))
  if (typeof by === 'function') return joined(`${name}:custom`, keyPart(value))
  const [whose, who] = [keyPart(issuer), keyPart(value)]
  if (typeof whose === 'string') return joined(`${name}:${by}:${whose}`, who)
  return whose.then(async (part) => `${name}:${by}:${part}:${await who}`)
}

function joined(kind: string, part: string | Promise<string>): string | Promise<string> {
  return typeof part === 'string' ? `${kind}:${part}` : part.then((text) => `${kind}:${text}`)
}

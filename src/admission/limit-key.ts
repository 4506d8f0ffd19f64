/** Keys of windows: the limit that counts, and the party that it counts. */
import { keyPart } from '../redis/key-part.ts'

/** Properties of a caller that a limit can count by without a function. */
export type LimitScope = 'key' | 'subject' | 'client' | 'tenant' | 'address'

/** The party that a window counts. */
interface WindowOwner {
  /**
   * For an API key, a subject or a tenant: the issuer that vouches for it (`Principal.issuer`). For a client:
   * the issuer of its tokens (`Principal.tokenIssuer`). Ignored for addresses and functions.
   */
  readonly issuer: string
  /** The id of the API key, the subject, client, tenant or normalized address, or the return value of the function. */
  readonly value: string
}

/**
 * Returns the key of one window of a limit, as `LimitRequest.key` contains it:
 * `<name>:address:<address>`, `<name>:custom:<value>`, or `<name>:<by>:<issuer>:<value>`. Each part
 * is a `keyPart`. Returns a promise only if a part is so long that it must be hashed.
 */
export function limitKeyOf(
  { name, by }: { readonly name: string; readonly by: LimitScope | ((...of: never) => string) },
  { issuer, value }: WindowOwner,
): string | Promise<string> {
  if (by === 'address') return joined(`${name}:address`, keyPart(value))
  if (typeof by === 'function') return joined(`${name}:custom`, keyPart(value))
  const [issuerPart, valuePart] = [keyPart(issuer), keyPart(value)]
  if (typeof issuerPart === 'string') return joined(`${name}:${by}:${issuerPart}`, valuePart)
  return issuerPart.then(async (part) => `${name}:${by}:${part}:${await valuePart}`)
}

function joined(kind: string, part: string | Promise<string>): string | Promise<string> {
  return typeof part === 'string' ? `${kind}:${part}` : part.then((text) => `${kind}:${text}`)
}

/** Binds identifiers of an MCP server to a caller, without storage. */
import { base64url } from 'jose'
import { derivedHmacKey } from '../../crypto/sha256.ts'

/** What is bound: a session, a request of the server, or an event of a stream. */
export type Bound = 'session' | 'request' | 'event'

export type Binding = ReturnType<typeof createBinding>

const BOUND = /^([\w-]{43})\.(.*)$/s
const PURPOSE = 'portcullis mcp binding'

/**
 * Creates a binding with a secret that all gateways share. Clients receive bound identifiers and
 * send them back; the server receives its own. So no gateway stores who began a session, and no
 * caller can use the session of another one, whatever identifiers it learns or guesses.
 */
export function createBinding(secret: string) {
  const encoder = new TextEncoder()
  let derived: Promise<CryptoKey> | undefined

  const key = () => {
    derived ??= derivedHmacKey(secret, PURPOSE)
    return derived
  }
  const covered = (what: Bound, owner: readonly string[], id: string) =>
    encoder.encode(JSON.stringify([what, id, ...owner]))

  return {
    /** Returns `<MAC>.<id>`. The same arguments give the same result. */
    async bind(what: Bound, owner: readonly string[], id: string): Promise<string> {
      const mac = await crypto.subtle.sign('HMAC', await key(), covered(what, owner, id))
      return `${base64url.encode(new Uint8Array(mac))}.${id}`
    },
    /** Returns the id, or undefined if `bound` is not of this kind and owner. Constant time. */
    async idIn(what: Bound, owner: readonly string[], bound: string): Promise<string | undefined> {
      const [, mac, id] = BOUND.exec(bound) ?? []
      if (mac === undefined || id === undefined) return undefined
      const bytes = base64url.decode(mac)
      const isValid = await crypto.subtle.verify(
        'HMAC',
        await key(),
        bytes,
        covered(what, owner, id),
      )
      return isValid ? id : undefined
    },
  }
}

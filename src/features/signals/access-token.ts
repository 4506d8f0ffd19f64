/** Access tokens for calls to a transmitter. */
import { call } from '../../access/tokens/document.ts'
import { Unavailable } from '../../errors.ts'
import { parseStrictJson } from '../../http/strict-json.ts'
import { isWithin } from '../../isolate/period.ts'
import type { TransmitterSecrets } from './schema.ts'

const MAX_BYTES = 65_536
const MAX_DEPTH = 8
/** A token is not used in the last part of its life. */
const RESERVE_SECONDS = 30
/** For a server that does not state the life. */
const DEFAULT_SECONDS = 300

type Credentials = Pick<TransmitterSecrets, 'accessToken' | 'client'>

/**
 * Creates the source of the `Authorization` header. Undefined: the transmitter needs none. Throws
 * `Unavailable` if the token endpoint does not give a token.
 */
export function createAccessToken({ accessToken, client }: Credentials, now: () => number) {
  let cached:
    | { readonly value: string; readonly lifeMs: number; readonly readMs: number }
    | undefined

  async function request({ id, secret, tokenEndpoint, scope }: NonNullable<typeof client>) {
    const { status, text } = await call(
      tokenEndpoint,
      {
        method: 'POST',
        headers: {
          accept: 'application/json',
          authorization: `Basic ${basic(id, secret)}`,
          'content-type': 'application/x-www-form-urlencoded',
        },
        body: new URLSearchParams({ grant_type: 'client_credentials', ...(scope && { scope }) }),
      },
      { dependency: 'identity_provider', maxBytes: MAX_BYTES, signal: AbortSignal.timeout(5_000) },
    )
    if (status !== 200) throw new Unavailable('identity_provider', 'refused')
    return tokenIn(text)
  }

  return async (signal?: 'renew'): Promise<string | undefined> => {
    if (accessToken !== undefined) return `Bearer ${accessToken}`
    if (client === undefined) return undefined
    if (signal === undefined && cached && isWithin(cached.readMs, cached.lifeMs, now()))
      return cached.value
    const { token, seconds } = await request(client)
    const lifeMs = (seconds - RESERVE_SECONDS) * 1_000
    cached = { value: `Bearer ${token}`, lifeMs, readMs: now() }
    return cached.value
  }
}

/** RFC 6749 section 2.3.1: both are form-encoded first. */
function basic(id: string, secret: string): string {
  const encoded = (text: string) => new URLSearchParams({ '': text }).toString().slice(1)
  return btoa(`${encoded(id)}:${encoded(secret)}`)
}

function tokenIn(text: string): { readonly token: string; readonly seconds: number } {
  try {
    const value = parseStrictJson(text, { maxDepth: MAX_DEPTH })
    if (typeof value === 'object' && value !== null && 'access_token' in value) {
      const { access_token: token } = value
      const seconds = 'expires_in' in value ? value.expires_in : DEFAULT_SECONDS
      if (typeof token === 'string' && /^[\x21-\x7e]+$/.test(token))
        return { token, seconds: typeof seconds === 'number' ? seconds : DEFAULT_SECONDS }
    }
  } catch {
    // As any other response without a token.
  }
  throw new Unavailable('identity_provider', 'malformed')
}

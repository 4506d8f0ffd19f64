/** What a token endpoint gave out while it was measured. */
import type { TokenFormat } from '../../src/tokens/access-grant.ts'

const FORMS: Readonly<Record<TokenFormat, RegExp>> = {
  jwt: /^[\w-]{20,}\.[\w-]{100,}\.[\w-]{86}$/,
  opaque: /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/,
}
const SAMPLES = 5

export interface IssuedTokens {
  /** Whether a body is that of a token response (RFC 6749 section 5.1), its token a new one. */
  readonly take: (body: string) => boolean
  /** Some of the tokens, first and last among them. Throws an `Error` where there are none. */
  samples(): readonly string[]
  /** Forgets all of them. */
  clear(): void
}

export function createIssuedTokens(format: TokenFormat): IssuedTokens {
  const tokens = new Set<string>()
  return {
    take(body) {
      const { access_token: token, token_type: type, expires_in: life } = parsed(body)
      const isNew = typeof token === 'string' && FORMS[format].test(token) && !tokens.has(token)
      if (isNew) tokens.add(token)
      return isNew && type === 'Bearer' && typeof life === 'number' && life > 0
    },
    samples() {
      const all = [...tokens]
      if (all.length === 0) throw new Error('no token was issued')
      return Array.from(
        { length: SAMPLES },
        (_, i) => all[Math.round((i * (all.length - 1)) / (SAMPLES - 1))] as string,
      )
    },
    clear: () => tokens.clear(),
  }
}

function parsed(body: string): Record<string, unknown> {
  try {
    return Object(JSON.parse(body)) as Record<string, unknown>
  } catch {
    return {}
  }
}

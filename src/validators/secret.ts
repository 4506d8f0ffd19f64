/** Detects secrets that are public or easy to guess. */

/**
 * 32 random bytes have about 30 distinct values, 32 random hex digits about 14. Fewer is a pattern.
 */
const MIN_DISTINCT_VALUES = 8

/** Words of documentation. A random key practically never contains one. */
const PLACEHOLDER =
  /secret|password|change.?me|replace.?me|placeholder|example|your[-_ ]|0123456|1234567|abcdefg|qwerty|test.?test|^<[\w .-]+>$/i

/**
 * The first characters of keys that are printed in RFC 7515, 7517, 7520 and 8037, as their `k`, `x`
 * or `n`. Every reader of these documents has the keys.
 */
const PUBLISHED = [
  'AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ',
  'hJtXIZ2uSN5kbQfbtTNWbpdmhkV8FJG',
  'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
  'MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4',
  '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo',
  'ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp',
  '0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86z',
  'n4EPtAOCc9AlkeQHPzHStgAbgs7bTZLwUBZdR8_KuKPEHLd4rHVTeT',
]

/** Reports whether a text that should be a secret is a placeholder. */
function isPlaceholder(text: string): boolean {
  return PLACEHOLDER.test(text) || new Set(text).size < MIN_DISTINCT_VALUES
}

/** Reports whether a symmetric key is a placeholder or follows a pattern. */
export function isGuessable(key: Uint8Array): boolean {
  return isPlaceholder(new TextDecoder().decode(key)) || new Set(key).size < MIN_DISTINCT_VALUES
}

/** Reports whether a key is printed in a public document. `member` is the key's `k`, `x` or `n`. */
export function isPublished(member: string): boolean {
  return PUBLISHED.some((beginning) => member.startsWith(beginning))
}

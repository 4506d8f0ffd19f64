/** Removes secrets from what is printed, whatever other parts do. */
import type { Values } from '../deploy/values.ts'

const SECRET = /TOKEN|SECRET|KEYS?$|HEADERS|CLIENTS/
/** The member of a JWK that is a symmetric key, also in `ISSUERS`. */
const SYMMETRIC_KEY = 'k'
/** Shorter texts appear by chance. */
const MIN_CHARACTERS = 12

/** Returns a function that replaces every secret of `values`, and every text within them. */
export function createRedactor(values: Values): (text: string) => string {
  const secrets = Object.entries(values)
    .flatMap(([name, value]) =>
      SECRET.test(name)
        ? [value, ...textsIn(value)]
        : [...textsIn(value, SYMMETRIC_KEY), ...passwordsIn(value)],
    )
    .filter(({ length }) => length >= MIN_CHARACTERS)
    // The longest first, because a secret may contain another one.
    .sort((a, b) => b.length - a.length)
  return (text) => secrets.reduce((shown, secret) => shown.replaceAll(secret, '***'), text)
}

/** Returns all texts inside a JSON value, or only those of one member name. */
function textsIn(json: string, member?: string): readonly string[] {
  const texts: string[] = []
  try {
    JSON.parse(json, (name, value: unknown) => {
      if (typeof value === 'string' && (member ?? name) === name) texts.push(value)
      return value
    })
  } catch {
    // The value is not JSON: it is one secret as a whole.
  }
  return texts
}

/** Returns the password of a URL, as it is written there and decoded. */
function passwordsIn(value: string): readonly string[] {
  const { password = '' } = /^[a-z+]+:\/\/[^:@/]*:(?<password>[^@/]+)@/i.exec(value)?.groups ?? {}
  try {
    return [password, decodeURIComponent(password)]
  } catch {
    return [password]
  }
}

/** Removes secrets from what is printed, whatever other parts do. */
import type { Values } from '../deploy/values.ts'

const SECRET = /TOKEN|SECRET|KEYS?$|HEADERS|CLIENTS/
/** The member of a JWK that is a symmetric key, also in `ISSUERS`. */
const SYMMETRIC_KEY = 'k'
/** Members of lists of clients that are no secrets. */
const PUBLIC_MEMBERS: ReadonlySet<string> = new Set([
  'alg',
  'apiUrl',
  'audience',
  'audiences',
  'authorizationEndpoint',
  'clientId',
  'client_id',
  'id',
  'issuer',
  'kid',
  'name',
  'redirectUris',
  'roles',
  'scope',
  'tokenEndpoint',
])
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
  // An item of a list has the name of the list: `redirectUris`.
  const visit = (name: string, value: unknown): void => {
    if (Array.isArray(value)) for (const item of value) visit(name, item)
    else if (typeof value === 'object' && value !== null)
      for (const [inner, item] of Object.entries(value)) visit(inner, item)
    else if (typeof value === 'string' && isWanted(name)) texts.push(value)
  }
  const isWanted = (name: string) =>
    member === undefined ? !PUBLIC_MEMBERS.has(name) : name === member
  try {
    visit('', JSON.parse(json))
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

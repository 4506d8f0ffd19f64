/** Headers that carry the verified identity to an origin. */
import { loginOf, type Principal } from '../access/principal.ts'

/** Visible ASCII without the percent sign: needs no encoding in a header. */
const PLAIN = /^[!-$&-~]*$/
const NOT_PLAIN = /[^!-$&-~]+/g

/** Percent-encodes everything but visible ASCII, and `%`. `decodeURIComponent` decodes it. */
export function headerWord(value: string): string {
  return PLAIN.test(value)
    ? value
    : value.toWellFormed().replace(NOT_PLAIN, (run) => encodeURIComponent(run))
}

/** A {@link headerWord} of a comma-separated list: split at commas, then decode. */
const listWord = (value: string): string => headerWord(value).replaceAll(',', '%2C')

/** The names of all headers about the caller, with that of the signed assertion. */
export const IDENTITY_HEADERS = [
  'subject',
  'issuer',
  'client',
  'tenant',
  'roles',
  'scope',
  'acr',
  'amr',
  'time',
  'assertion',
].map((name) => `x-auth-${name}`)

/** `headers` must not contain a client's own `X-Auth-*`: see `sanitizeHeaders`. */
export function setIdentity(
  headers: { set(name: string, value: string): unknown },
  principal: Principal,
): void {
  headers.set('x-auth-subject', headerWord(principal.subject))
  headers.set('x-auth-issuer', headerWord(principal.issuer))
  if (principal.client !== undefined) headers.set('x-auth-client', headerWord(principal.client))
  if (principal.tenant !== undefined) headers.set('x-auth-tenant', headerWord(principal.tenant))
  if (principal.roles.length > 0)
    headers.set('x-auth-roles', principal.roles.map(listWord).join(','))
  if (principal.scopes.length > 0)
    headers.set('x-auth-scope', principal.scopes.map(headerWord).join(' '))
  const login = loginOf(principal)
  if (login === undefined) return
  const { acr, amr, authTimeSeconds } = login
  if (acr !== undefined) headers.set('x-auth-acr', headerWord(acr))
  if (amr !== undefined) headers.set('x-auth-amr', amr.map(listWord).join(','))
  if (authTimeSeconds !== undefined) headers.set('x-auth-time', String(authTimeSeconds))
}

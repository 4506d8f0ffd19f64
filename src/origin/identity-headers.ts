/** Headers that carry the verified identity to an origin. */
import { loginOf, type Principal } from '../access/principal.ts'
import { headerWord, listWord } from '../http/header-word.ts'

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
  for (const [name, value] of principal.headers ?? []) headers.set(name, value)
  const login = loginOf(principal)
  if (login === undefined) return
  const { acr, amr, authTimeSeconds } = login
  if (acr !== undefined) headers.set('x-auth-acr', headerWord(acr))
  if (amr !== undefined) headers.set('x-auth-amr', amr.map(listWord).join(','))
  if (authTimeSeconds !== undefined) headers.set('x-auth-time', String(authTimeSeconds))
}

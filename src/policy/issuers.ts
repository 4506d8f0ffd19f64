/** Issuers in the policy file, in place of the variable `ISSUERS`. */
import type { IssuerInput } from '../validators/issuer-input.ts'

/**
 * Returns the trusted issuers of access tokens for `issuers` of the policy, which checks them. They are in place of the variable
 * `ISSUERS`, and contain no secrets: an issuer with a secret in `jwks` needs the variable. The parameter has no type of its own:
 * the compiler then refuses unknown fields and presets.
 *
 * @example
 * ```ts
 * import { defineIssuers, definePolicy } from 'portcullis'
 *
 * export const issuers = defineIssuers([
 *   { preset: 'auth0', issuer: 'https://example.eu.auth0.com/', audience: 'https://api.example.com' },
 * ])
 *
 * export default definePolicy({ issuers, roles: {}, limits: {}, routes: [] })
 * ```
 */
export function defineIssuers(issuers: readonly IssuerInput[]): readonly IssuerInput[] {
  return issuers
}

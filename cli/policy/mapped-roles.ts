/** Roles that `rolesMap` of an issuer names, and the policy does not have. */
import type { Policy } from '../../src/policy/policy.ts'
import { didYouMean } from '../../src/suggestions/did-you-mean.ts'
import type { Finding } from './finding.ts'
import { entriesIn } from './login-ages.ts'

/** Yields a finding for each. A result with `*` depends on the token, so it is not checked. */
export function* unknownMappedRoles(
  { roles, issuers }: Policy,
  { ISSUERS }: NodeJS.ProcessEnv,
): Generator<Omit<Finding, 'rule' | 'severity'>> {
  const known = [...roles.keys()]
  for (const [index, { issuer, rolesMap }] of entriesIn(ISSUERS).entries())
    for (const [name, to] of Object.entries(rolesMap ?? {}))
      for (const role of [to].flat().map(String))
        if (!role.includes('*') && !roles.has(role))
          yield {
            path: issuers === undefined ? ['roles'] : ['issuers', index, 'rolesMap', name],
            message: `rolesMap of ${String(issuer)}: ${name} becomes ${role}, which is no role of the policy`,
            suggestion: didYouMean(role, known) ?? 'add it to roles, or correct rolesMap',
          }
}

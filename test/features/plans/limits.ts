/** Metered limits for tests, as `admit` requests them. */
import type { LimitRequest } from '../../../src/access/admission/limit.ts'
import type { Principal } from '../../../src/access/principal.ts'
import type { LimitGroup, NamedLimit } from '../../../src/policy/definition.ts'

/** Returns the requests of a caller for all limits of a group. `owner` separates tests. */
export async function requestsOf(
  group: LimitGroup,
  owner: string,
  principal: Principal | null = null,
): Promise<LimitRequest[]> {
  return Promise.all(
    group.limits('plan', {}).map((rule) => requestOf(rule, `${rule.name}:${owner}`, principal)),
  )
}

async function requestOf(
  rule: NamedLimit,
  key: string,
  principal: Principal | null,
): Promise<LimitRequest> {
  return rule.meter?.complete({ rule, key }, principal) ?? { rule, key }
}

/** Repeats one permission check of the product, so often that HTTP does not count. */
import { createAuthorizer, type Principal } from '../../src/index.ts'
import {
  CHECK_ROLES,
  type ChecksAnswer,
  NO_CHECK,
  PERMISSION_CHECKS,
  type PermissionCheck,
} from '../requests/permission-checks.ts'

/** As many as take turns in a busy isolate; a power of two. */
const PRINCIPALS = 64

/** Answers `/checks/<id>/<count>`. */
export function createPermissionChecks() {
  const isPermitted = createAuthorizer(CHECK_ROLES)
  const principals = new Map(PERMISSION_CHECKS.map((check) => [check.id, principalsOf(check)]))

  return function checks(request: Request): Response {
    const [, , id = '', count = ''] = new URL(request.url).pathname.split('/')
    const check = PERMISSION_CHECKS.find((known) => known.id === id)
    if (check === undefined && id !== NO_CHECK)
      return new Response('no such check', { status: 404 })
    const askers = principals.get(id) ?? []
    let allowed = 0
    for (let index = 0; index < Number(count); index++) {
      const asker = askers[index & (PRINCIPALS - 1)]
      if (asker !== undefined && isPermitted(asker, check?.permission ?? '')) allowed++
    }
    return Response.json({ count: Number(count), allowed } satisfies ChecksAnswer)
  }
}

function principalsOf({ roles, scopes }: PermissionCheck): readonly Principal[] {
  return Array.from({ length: PRINCIPALS }, (_, index) => ({
    ...{ issuer: '', tokenIssuer: '', subject: `asker-${index}`, roles, scopes },
    ...{ client: undefined, tenant: undefined, session: undefined, confirmation: undefined },
    ...{ tokenId: undefined, tokenIdHash: undefined },
    ...{ issuedAtSeconds: 0, expiresAtSeconds: 0 },
  }))
}

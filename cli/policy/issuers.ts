/** The issuers of a policy, for commands that otherwise read `ISSUERS`. */
import type { Policy } from '../../src/policy/policy.ts'
import { loadPolicy, policyFile } from './load.ts'

/** Returns `ISSUERS` of a policy with issuers of its own. */
const issuersText = ({ issuers }: Pick<Policy, 'issuers'>): string | undefined =>
  issuers === undefined ? undefined : JSON.stringify(issuers)

/**
 * Returns `ISSUERS` of the policy of the project in `root`. Undefined without a project or a policy, and if the policy
 * has no issuers or cannot be read: other checks report that. `named` is the path of another policy.
 */
export async function issuersOfProject(
  root: string | undefined,
  named?: string,
): Promise<string | undefined> {
  if (root === undefined) return undefined
  try {
    return issuersText(await loadPolicy(policyFile(named, '--config', root, root), root))
  } catch {
    return undefined
  }
}

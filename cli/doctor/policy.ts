/** Checks what the features of the policy need from the variables. */
import { loadPolicy, policyFile } from '../policy/load.ts'
import { type Finding, notChecked, ok, warning } from './finding.ts'

const CHECK = 'features'

/** Features that sign or accept tokens of the gateway itself. */
const SIGNING: Readonly<Record<string, string>> = {
  authorizationServer: 'authorizationServer() issues no tokens',
  authorizationCode: 'authorizationCode() issues no tokens',
  operators:
    'operators() cannot register clients, so the command line has no token; only tokens of ISSUERS with portcullis permissions are accepted',
}

/**
 * Checks the policy of the project in `root`. Returns nothing without a project or a policy. A gateway
 * that runs elsewhere may have another policy.
 */
export async function checkFeatures(
  root: string | undefined,
  values: Readonly<Record<string, string | undefined>>,
): Promise<readonly Finding[]> {
  if (root === undefined) return []
  let policy: Awaited<ReturnType<typeof loadPolicy>>
  try {
    policy = await loadPolicy(policyFile(undefined, '--config', root, root), root)
  } catch (error) {
    const remedy = 'Run `npx portcullis policy check` in the folder of the project.'
    const reason = (error as Error).message.replaceAll(/\s+/g, ' ')
    return [notChecked(CHECK, `the policy was not read: ${reason}`, remedy)]
  }
  const names = policy.features.map(({ name }) => name)
  if (values.SIGNING_KEYS !== undefined) return [ok(CHECK, names.join(', ') || 'none')]
  const idle = names.flatMap((name) => SIGNING[name] ?? [])
  const remedy = 'Set SIGNING_KEYS to the output of `npx portcullis keys generate`.'
  return idle.length === 0
    ? [ok(CHECK, names.join(', ') || 'none')]
    : idle.map((text) => warning(CHECK, `without SIGNING_KEYS, ${text}`, remedy))
}

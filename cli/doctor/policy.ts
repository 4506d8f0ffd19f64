/** Checks what the features of the policy need from the variables. */
import { type CheckedCredentials, checkedCredentials } from '../policy/credentials.ts'
import { type DeclaredFeature, declaredFeatures } from '../policy/features.ts'
import { loadPolicy, policyFile } from '../policy/load.ts'
import { type Finding, mistake, notChecked, ok, warning } from './finding.ts'

const CHECK = 'features'

/** Features that sign or accept tokens of the gateway itself. */
const SIGNING: Readonly<Record<string, string>> = {
  authorizationServer: 'authorizationServer() issues no tokens',
  authorizationCode: 'authorizationCode() issues no tokens',
  operators:
    'operators() cannot register clients, so the command line has no token; only tokens of ISSUERS with portcullis permissions are accepted',
}

type Values = Readonly<Record<string, string | undefined>>

/**
 * Checks the policy of the project in `root`, or the one in `named`. Returns nothing without a project or
 * a policy. A gateway that runs elsewhere may have another policy. `given` has all variables, `known`
 * those that the gateway itself has.
 */
export async function checkFeatures(
  root: string | undefined,
  values: Values,
  given: Values,
  known: Readonly<Record<string, unknown>>,
  named?: string,
): Promise<readonly Finding[]> {
  if (root === undefined) return []
  let policy: Awaited<ReturnType<typeof loadPolicy>>
  try {
    policy = await loadPolicy(named ?? policyFile(undefined, '--config', root, root), root)
  } catch (error) {
    const remedy = 'Run `npx portcullis policy check` in the folder of the project.'
    const reason = (error as Error).message.replaceAll(/\s+/g, ' ')
    return [notChecked(CHECK, `the policy was not read: ${reason}`, remedy)]
  }
  const names = policy.features.map(({ name }) => name)
  const own = [
    ...declaredFeatures(policy, given, known).flatMap(findingsOf),
    ...checkedCredentials(policy, given).flatMap(credentialFindings),
  ]
  const all = ok(CHECK, names.join(', ') || 'none')
  if (values.SIGNING_KEYS !== undefined) return [all, ...own]
  const idle = names.flatMap((name) => SIGNING[name] ?? [])
  const remedy = 'Set SIGNING_KEYS to the output of `npx portcullis keys generate`.'
  return idle.length === 0
    ? [all, ...own]
    : [...idle.map((text) => warning(CHECK, `without SIGNING_KEYS, ${text}`, remedy)), ...own]
}

/** Returns what a feature of the user reads and stores, and what is wrong with its variables. */
function findingsOf({ name, variables, keys }: DeclaredFeature): readonly Finding[] {
  const check = `feature ${name}`
  const mistakes = variables.flatMap((one) => one.mistake ?? [])
  if (mistakes.length > 0)
    return mistakes.map((text) => mistake(check, text, 'Correct the variable.'))
  const seen = [
    ...variables.map((one) => `${one.name} is ${one.isSet ? 'set' : 'not set'}`),
    ...keys.map((key) => `keys ${key}`),
  ]
  return [ok(check, seen.join(', '))]
}

function credentialFindings({ words, mistakes }: CheckedCredentials): readonly Finding[] {
  const check = 'credentials'
  if (mistakes.length === 0) return [ok(check, `${words}: set`)]
  return mistakes.map((text) => mistake(check, text, 'Set the variable where the gateway runs.'))
}

/** Values of options and arguments that the tab key suggests. Most of them are names in the policy of the project. */
import type { CommandUnknownOpts } from '@commander-js/extra-typings'
import { PRESETS } from '../../src/identity-providers/presets.ts'
import { policyFile } from '../policy/load.ts'
import { projectAround } from '../project.ts'

/** Names that a policy defines. */
type PolicyNames = 'roles' | 'limits' | 'plans' | 'routes'
type Source = readonly string[] | PolicyNames

const PRESET_NAMES = Object.keys(PRESETS)

/** By the path of a command, and the name of an option or an argument of it. */
const VALUES: Readonly<Record<string, Readonly<Record<string, Source>>>> = {
  'idp show': { preset: PRESET_NAMES },
  'idp doctor': { '--preset': PRESET_NAMES },
  'api-keys create': { '--role': 'roles', '--plan': 'plans' },
  'api-keys update': { '--plan': 'plans' },
  'api-keys list': { '--status': ['active', 'expired', 'revoked'] },
  'audit query': { '--route': 'routes' },
  'audit tail': { '--route': 'routes' },
  'clients create': { '--role': 'roles' },
  explain: { '--role': 'roles' },
  'limits override': { limit: 'limits' },
  'limits reset': { limit: 'limits' },
  'plans assign': { plan: 'plans' },
  'token mint': { '--role': 'roles', '--format': ['jwt', 'opaque'] },
  'token sign': { '--role': 'roles' },
}

/**
 * Sets the values of the command that `words` name. Reads the policy of the project only if the command needs it; a
 * policy that cannot be read has no names.
 */
export async function addValues(
  program: CommandUnknownOpts,
  words: readonly string[],
): Promise<void> {
  const [command, path] = commandNamedBy(program, words)
  const values = VALUES[path]
  if (values === undefined) return
  const before = words.at(-2) ?? ''
  for (const [name, source] of Object.entries(values)) {
    const part =
      command.options.find(({ long }) => long === name) ??
      command.registeredArguments.find((argument) => argument.name() === name)
    // The policy is read for the option that is completed, or for an argument.
    if (part === undefined || (name.startsWith('--') && before !== name)) continue
    part.argChoices = typeof source === 'string' ? await namesIn(source) : [...source]
  }
}

function commandNamedBy(
  program: CommandUnknownOpts,
  words: readonly string[],
): readonly [CommandUnknownOpts, string] {
  let command = program
  const path: string[] = []
  for (const word of words) {
    const next = command.commands.find((candidate) => candidate.name() === word)
    if (next === undefined) break
    command = next
    path.push(word)
  }
  return [command, path.join(' ')]
}

async function namesIn(source: PolicyNames): Promise<string[]> {
  try {
    const root = projectAround(process.cwd())
    if (root === undefined) return []
    const { loadPolicy } = await import('../policy-tools.ts')
    const policy = await loadPolicy(policyFile(undefined, '', root, root), root)
    if (source === 'routes') return [...new Set(policy.routes.map(({ path }) => path))]
    if (source === 'plans')
      return [
        ...new Set(
          [...policy.limits.values()].flatMap(({ meter }) => [
            ...(meter?.plans?.units.keys() ?? []),
          ]),
        ),
      ]
    return [...policy[source].keys()]
  } catch {
    return []
  }
}

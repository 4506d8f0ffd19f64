/** Says who uses a policy from now on: the account of this process, and the commit of the policy's file. */
import { execFileSync } from 'node:child_process'
import { hostname, userInfo } from 'node:os'
import { basename, dirname } from 'node:path'
import type { Policy } from '../../src/policy/policy.ts'
import { loadPolicy, policyFile } from './load.ts'

/** As the gateway bounds the variable `DEPLOYED_BY`. */
const MAX_CHARACTERS = 200
const GIT_MS = 5_000

/** Returns the account of the process. */
function account(): string {
  try {
    return `${userInfo().username}@${hostname()}`
  } catch {
    return `${process.getuid?.() ?? 'unknown'}@${hostname()}`
  }
}

/**
 * Returns the text for `DEPLOYED_BY`. The commit is the last one that changed `file`; its author is what the commit says.
 * Without Git, a repository or a file in it, the text is only the account.
 */
export function deployedBy(file: string | undefined): string {
  const commit = file === undefined ? undefined : commitOf(file)
  const whole = commit === undefined ? account() : `${account()}, ${commit}`
  return whole.slice(0, MAX_CHARACTERS)
}

/**
 * Returns the text for a deployment of a project: that of `values`, if there is one. Undefined if the policy has no console,
 * or cannot be read.
 */
export async function deployerOf(
  root: string,
  { DEPLOYED_BY }: Readonly<Record<string, string | undefined>>,
): Promise<string | undefined> {
  if (DEPLOYED_BY) return DEPLOYED_BY
  try {
    const file = policyFile(undefined, '--config', root, root)
    return withDeployer({ DEPLOYED_BY }, await loadPolicy(file, root), file).DEPLOYED_BY
  } catch {
    return undefined
  }
}

/** Adds the text to an environment that does not have it, for a policy with a console. */
export function withDeployer<Env extends Readonly<Record<string, string | undefined>>>(
  env: Env,
  { features }: Pick<Policy, 'features'>,
  file: string | undefined,
): Env | (Env & { readonly DEPLOYED_BY: string }) {
  if (env.DEPLOYED_BY || !features.some(({ name }) => name === 'console')) return env
  return { ...env, DEPLOYED_BY: deployedBy(file) }
}

function commitOf(file: string): string | undefined {
  const git = (...args: readonly string[]): string =>
    execFileSync('git', [...args, '--', basename(file)], {
      cwd: dirname(file),
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      timeout: GIT_MS,
    }).trim()
  try {
    const [hash = '', author = ''] = git('log', '-1', '--format=%h%x00%an').split('\0')
    if (hash === '') return undefined
    const isChanged = git('status', '--porcelain') !== ''
    return `${isChanged ? 'uncommitted changes after ' : ''}commit ${hash} by ${author}`
  } catch {
    return undefined
  }
}

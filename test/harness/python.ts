/** Packages for Python in an environment of their own. */
import { execFileSync, spawnSync } from 'node:child_process'
import { join } from 'node:path'

const TIMEOUT_MS = 120_000

/**
 * Creates an environment in `folder`, and installs a package with its dependencies. Throws with the error output if
 * Python, pip or the registry is missing. The pip of the machine installs, if there is one: a pip of each
 * environment, and compiling modules that nothing imports, take longer than the rest.
 */
export function createPythonEnvironment(folder: string, requirement: string): void {
  const options = { encoding: 'utf8', timeout: TIMEOUT_MS, stdio: 'pipe' } as const
  const python = join(folder, 'bin', 'python')
  const hasPip = spawnSync('python3', ['-m', 'pip', '--version'], options).status === 0
  execFileSync('python3', ['-m', 'venv', ...(hasPip ? ['--without-pip'] : []), folder], options)
  execFileSync(
    hasPip ? 'python3' : python,
    [
      ...['-m', 'pip', ...(hasPip ? ['--python', python] : []), 'install', '--no-compile'],
      ...['--quiet', '--no-input', '--disable-pip-version-check', requirement],
    ],
    options,
  )
}

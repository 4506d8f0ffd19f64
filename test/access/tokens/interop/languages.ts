/** Verifiers and issuers of tokens in other languages, if this machine has their tools. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

const FOLDER = import.meta.dirname
const PYTHON_PACKAGES = ['pyjwt==2.15.1', 'cryptography==50.0.2']
const INSTALL_TIMEOUT_MS = 120_000
const RUN_TIMEOUT_MS = 60_000

export interface Verification {
  readonly claims?: Readonly<Record<string, unknown>>
  readonly error?: string
}

export interface Minted {
  readonly jwks: { readonly keys: readonly object[] }
  /** Tokens by algorithm. */
  readonly tokens: Readonly<Record<string, string>>
}

export interface Language {
  readonly name: string
  /** Names the missing tool, or is undefined if the language can run. */
  readonly missing: string | undefined
  /** Verifies tokens, by name, against a JWK Set, an issuer and an audience. */
  verify(document: object): Readonly<Record<string, Verification>>
  /** Creates a key of each algorithm, and a token with the given claims signed by each. */
  mint(document: object): Minted
}

interface Program {
  readonly command: string
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

/** A program, or the reason why it is unavailable. */
type Prepared = Program | string

function language(name: string, prepared: Prepared): Language {
  function run<Answer>(act: string, document: object): Answer {
    if (typeof prepared === 'string') throw new Error(prepared)
    const { command, args, env } = prepared
    const { status, stdout, stderr } = spawnSync(command, [...args, act], {
      input: JSON.stringify(document),
      encoding: 'utf8',
      env: { ...process.env, ...env },
      timeout: RUN_TIMEOUT_MS,
    })
    if (status !== 0) throw new Error(`${name} exited with ${status}: ${stderr}`)
    return JSON.parse(stdout) as Answer
  }
  return {
    name,
    missing: typeof prepared === 'string' ? prepared : undefined,
    verify: (document) => run('verify', document),
    mint: (document) => run('mint', document),
  }
}

/** Compiles the program into `directory` with the local toolchain: no module, no download. */
export function go(directory: string): Language {
  const binary = join(directory, 'interop')
  const { error, status, stderr } = spawnSync('go', ['build', '-o', binary, 'main.go'], {
    cwd: join(FOLDER, 'go'),
    encoding: 'utf8',
    env: { ...process.env, GOTOOLCHAIN: 'local', GOPROXY: 'off', GO111MODULE: 'off' },
    timeout: INSTALL_TIMEOUT_MS,
  })
  if (error !== undefined) return language('Go', `go is not installed (${error.message})`)
  // The compiler exists, so a program that does not compile is a failure, not a reason to skip.
  if (status !== 0) throw new Error(`go build: ${stderr}`)
  return language('Go', { command: binary, args: [] })
}

/** Installs PyJWT below `directory`, and does not change the Python of the machine. */
export function python(directory: string): Language {
  const packages = join(directory, 'python')
  const { error, status, stderr } = spawnSync(
    'python3',
    [
      ...['-m', 'pip', 'install', '--quiet', '--no-input', '--disable-pip-version-check'],
      ...['--only-binary', ':all:', '--target', packages, ...PYTHON_PACKAGES],
    ],
    { encoding: 'utf8', timeout: INSTALL_TIMEOUT_MS },
  )
  if (status !== 0) {
    const reason = error?.message ?? stderr.trim().split('\n').at(-1)
    return language('Python', `PyJWT could not be installed (${reason})`)
  }
  const env = { PYTHONPATH: packages }
  const args = [join(FOLDER, 'python', 'interop.py')]
  return language('Python', { command: 'python3', args, env })
}

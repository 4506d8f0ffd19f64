/** Writes the files of a project. */
import { spawnSync } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Answers, type Kind, nameOf } from './answers.ts'
import { FAILED, Failure } from './failure.ts'
import { entryOf, type Issuer } from './identity-providers.ts'

/** What a gateway on Node has in common with one on Workers. */
const OF_EVERY_GATEWAY = /^(?:portcullis\.config\.ts|test\/.*)$/
const TEMPLATES = join(dirname(fileURLToPath(import.meta.url)), '..', 'templates')
/** npm removes a file with the real name from a package. */
const IGNORE_FILE = 'gitignore'
const PACKAGE = 'portcullis'
/** The name in the templates. */
const NAME = 'my-gateway'
const ORIGIN_LINE = '# ORIGIN_URL = "https://origin.example.com"'
const ORIGIN_VARIABLE = '# ORIGIN_URL=https://origin.example.com'
/** What the template has for its own MCP server. */
const EXAMPLE_ORIGIN = 'ORIGIN_URL=http://127.0.0.1:3000'
const EXAMPLE_SERVER = ' --import ./server.ts'
const ISSUERS_LINE = "# ISSUERS = '[]'"
const ISSUERS_VARIABLE = "# ISSUERS='[]'"
/** Of a gateway on Node: in development, and in production. */
const VARIABLE_FILES = ['dev.env', '.env.example']
/** Of the Dockerfile: what `npm ci` needs. */
const IMAGE_LINE = 'COPY package.json package-lock.json ./'
const EMBEDDED_REDIS = 'js-redis-server'
const OWNER_ONLY = 0o600
/** The names that an existing directory may contain. */
const HARMLESS = ['.git', '.DS_Store']

export interface Written {
  /** Absolute path. */
  readonly directory: string
  readonly name: string
  /** Paths in the directory, sorted. */
  readonly files: readonly string[]
  /** Whether a Git repository was created. */
  readonly git: boolean
}

/**
 * Writes the project for `answers`; paths are relative to `cwd`. `env` contains the credentials for
 * `upstash`. Throws a failure if the directory is not empty or cannot be written.
 */
export function writeProject(answers: Answers, cwd: string, env: NodeJS.ProcessEnv): Written {
  const directory = resolve(cwd, answers.directory)
  const name = nameOf(directory)
  requireEmpty(directory)
  const files = new Map([...filesOf('shared'), ...filesOfKind(answers.kind)])
  if (answers.origin !== undefined) files.delete('server.ts')
  for (const [path, text] of files) files.set(path, text.replaceAll(NAME, name))
  change(files, 'package.json', (text) => manifest(text, answers))
  change(files, 'wrangler.toml', (text) => configuration(text, answers))
  for (const path of VARIABLE_FILES) change(files, path, (text) => variables(text, answers))
  change(files, 'README.md', (text) => readme(text, answers))
  const tarball = answers.tarball === undefined ? undefined : resolve(cwd, answers.tarball)
  if (tarball !== undefined) useTarball(files, basename(tarball))
  const credentials = upstashCredentials(answers, env)
  if (credentials !== undefined) files.set('.dev.vars', credentials)
  try {
    for (const [path, text] of files) write(join(directory, path), text)
    if (tarball !== undefined) copyFileSync(tarball, join(directory, basename(tarball)))
  } catch (error) {
    const { code, path = directory } = error as NodeJS.ErrnoException
    throw new Failure(FAILED, 'not_written', `${path} cannot be written (${code})`)
  }
  return {
    directory,
    name,
    files: [...files.keys(), ...(tarball === undefined ? [] : [basename(tarball)])].sort(),
    git: answers.git && initialize(directory),
  }
}

/** Creates a Git repository, unless the directory is in one or there is no `git`. Returns whether it did. */
function initialize(directory: string): boolean {
  const git = (...args: readonly string[]) =>
    spawnSync('git', args, { cwd: directory, stdio: 'ignore' }).status === 0
  return !git('rev-parse', '--is-inside-work-tree') && git('init')
}

function requireEmpty(directory: string): void {
  if (!existsSync(directory)) return
  if (!statSync(directory).isDirectory()) {
    throw new Failure(FAILED, 'not_a_directory', `${directory} exists and is not a directory`)
  }
  const [found] = readdirSync(directory).filter((entry) => !HARMLESS.includes(entry))
  if (found === undefined) return
  throw new Failure(
    FAILED,
    'directory_not_empty',
    `${directory} is not empty: it contains ${found}; choose another directory`,
  )
}

function* filesOfKind(kind: Kind): Generator<readonly [string, string]> {
  if (kind === 'node')
    for (const file of filesOf('gateway')) if (OF_EVERY_GATEWAY.test(file[0])) yield file
  yield* filesOf(kind)
}

/** Yields the files of a template: their paths in the project, and their text. */
function* filesOf(template: string): Generator<readonly [string, string]> {
  const root = join(TEMPLATES, template)
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const file = join(entry.parentPath, entry.name)
    const path = file.slice(root.length + 1).replaceAll('\\', '/')
    const target = basename(path) === IGNORE_FILE ? `.${path}` : path
    yield [target, readFileSync(file, 'utf8')]
  }
}

function change(files: Map<string, string>, path: string, edit: (text: string) => string): void {
  const text = files.get(path)
  if (text !== undefined) files.set(path, edit(text))
}

function manifest(text: string, { redis, kind, origin }: Answers): string {
  if (kind === 'mcp' && origin !== undefined) {
    const { '@modelcontextprotocol/sdk': _, ...dependencies } = JSON.parse(text).dependencies
    const { server: __, ...scripts } = JSON.parse(text).scripts
    const changed = { ...JSON.parse(text), dependencies, scripts }
    return `${replaceOnce(JSON.stringify(changed, undefined, 2), EXAMPLE_SERVER, '')}\n`
  }
  if (redis === 'local') return text
  const parsed = JSON.parse(text) as { devDependencies: Record<string, string> }
  delete parsed.devDependencies[EMBEDDED_REDIS]
  return `${JSON.stringify(parsed, undefined, 2)}\n`
}

/** Changes the files so that the project uses a tarball in its own folder. */
function useTarball(files: Map<string, string>, file: string): void {
  change(files, 'package.json', (text) => {
    const parsed = JSON.parse(text) as { dependencies: Record<string, string> }
    parsed.dependencies[PACKAGE] = `file:./${file}`
    return `${JSON.stringify(parsed, undefined, 2)}\n`
  })
  change(files, 'Dockerfile', (text) =>
    replaceOnce(text, IMAGE_LINE, `COPY package.json package-lock.json ${file} ./`),
  )
}

function configuration(text: string, { origin, issuer }: Answers): string {
  const withOrigin =
    origin === undefined
      ? text
      : replaceOnce(text, ORIGIN_LINE, `ORIGIN_URL = ${JSON.stringify(origin)}`)
  return issuer === undefined
    ? withOrigin
    : replaceOnce(withOrigin, ISSUERS_LINE, `ISSUERS = '''\n${issuersOf(issuer, 2)}\n'''`)
}

/** Sets the variables in a file of `NAME=value`. */
function variables(text: string, { origin, issuer, kind }: Answers): string {
  const line = kind === 'mcp' ? EXAMPLE_ORIGIN : ORIGIN_VARIABLE
  const withOrigin = origin === undefined ? text : replaceOnce(text, line, `ORIGIN_URL=${origin}`)
  return issuer === undefined
    ? withOrigin
    : replaceOnce(withOrigin, ISSUERS_VARIABLE, `ISSUERS='${issuersOf(issuer)}'`)
}

/** Returns the JSON of `ISSUERS`, without the quotation mark that would end a text. */
function issuersOf(issuer: Issuer, indent?: number): string {
  return JSON.stringify([entryOf(issuer)], undefined, indent).replaceAll("'", '\\u0027')
}

/** Removes the sections of the README that do not apply, and the marks around the others. */
function readme(text: string, { issuer, redis, tarball }: Answers): string {
  const shown = [
    issuer === undefined ? 'no-issuer' : 'issuer',
    redis === 'upstash' ? 'upstash' : 'local',
    tarball === undefined ? 'registry' : 'tarball',
  ]
  return text
    .replace(
      /<!-- if ([\w-]+) -->\n([\s\S]*?)<!-- end -->\n/g,
      (_, condition: string, body: string) => (shown.includes(condition) ? body : ''),
    )
    .replaceAll('IDENTITY_PROVIDER', issuer?.provider.title ?? '')
    .replaceAll(
      'NOTES_OF_PROVIDER',
      issuer?.provider.notes.map((note) => `* ${note}`).join('\n') ?? '',
    )
}

/** Returns the text of `.dev.vars`, or undefined if it has no credentials to contain. */
function upstashCredentials({ redis }: Answers, env: NodeJS.ProcessEnv): string | undefined {
  const { UPSTASH_REDIS_REST_URL: url, UPSTASH_REDIS_REST_TOKEN: token } = env
  if (redis !== 'upstash' || !url || !token) return undefined
  return `UPSTASH_REDIS_REST_URL='${url}'\nUPSTASH_REDIS_REST_TOKEN='${token}'\n`
}

function replaceOnce(text: string, part: string, replacement: string): string {
  if (text.split(part).length !== 2) throw new TypeError(`the template must contain once: ${part}`)
  return text.replace(part, () => replacement)
}

function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text, basename(file) === '.dev.vars' ? { mode: OWNER_ONLY } : {})
}

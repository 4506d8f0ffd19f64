import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'smol-toml'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { PROVIDERS } from '../../packages/create-portcullis/src/identity-providers.ts'
import { issuers } from '../../src/validators/issuer.ts'
import { type Outcome, runIn } from '../dev/start/checkout.ts'
import { ROOT } from '../harness/process.ts'

const MAIN = join(ROOT, 'packages/create-portcullis/src/main.ts')
const ISSUER = 'https://idp.example.com/it-s'

describe('create-portcullis', () => {
  let folder: string
  let count = 0

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'portcullis-flags-'))
  })

  afterAll(() => rm(folder, { recursive: true, force: true }))

  function create(args: readonly string[], env: Record<string, string> = {}): Promise<Outcome> {
    return runIn(folder, ['node', MAIN, ...args], env).ended
  }

  /** Creates a project, and returns its folder. */
  async function created(...args: readonly string[]): Promise<string> {
    const name = `project-${++count}`
    const { code, stderr } = await create([name, '--yes', '--no-git', ...args])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    return join(folder, name)
  }

  async function varsIn(path: string): Promise<unknown> {
    return parse(await readFile(join(path, 'wrangler.toml'), 'utf8')).vars
  }

  test.each([
    ['an unknown flag', ['--colour'], "Unknown option '--colour'; see --help"],
    ['a flag without its value', ['--kind'], "Option '--kind' argument is ambiguous; see --help"],
    ['two directories', ['a', 'b'], 'one directory is expected, not 2'],
    [
      'an unknown kind',
      ['--kind', 'proxy'],
      '--kind must be one of: gateway, node, middleware, mcp',
    ],
    ['an unknown identity provider', ['--idp', 'auht0'], '--idp must be one of: none, auth0, '],
    ['a misspelled identity provider', ['--idp', 'auht0'], '; did you mean "auth0"?'],
    [
      'Upstash on Node',
      ['--kind', 'node', '--redis', 'upstash'],
      '--redis upstash is for Workers: a gateway on Node uses the Redis of REDIS_URL',
    ],
    ['an unknown Redis', ['--redis', 'valkey'], '--redis must be one of: local, upstash'],
    [
      'an origin that is no URL',
      ['--origin', 'localhost'],
      '--origin must be an http or https URL',
    ],
    ['another scheme', ['--origin', 'ftp://a.example'], '--origin must be an http or https URL'],
    [
      'an origin with a password',
      ['--origin', 'https://a:b@c.example'],
      '--origin must have no credentials',
    ],
    [
      'an issuer without TLS',
      ['--issuer', 'http://idp.example.com'],
      '--issuer must be an https URL',
    ],
    ['an issuer with a query', ['--issuer', `${ISSUER}?a=b`], '--issuer must have no credentials'],
    ['an empty audience', ['--audience', ''], '--audience must be a name without spaces'],
    ['an issuer alone', ['--issuer', ISSUER], '--audience is missing: the identifier of the API'],
    ['an audience alone', ['--audience', 'api'], '--issuer is missing, such as https://ISSUER'],
    ['a provider alone', ['--idp', 'okta'], '--issuer is missing, such as https://'],
    ['no provider with its issuer', ['--idp', 'none', '--issuer', ISSUER], '--idp none excludes'],
    [
      'an origin of a middleware',
      ['--kind', 'middleware', '--origin', 'https://a.example'],
      '--origin is for a gateway: the routes of a middleware',
    ],
    [
      'a tarball that does not exist',
      ['--package', 'no.tgz'],
      '--package: there is no tarball no.tgz',
    ],
    ['a package that is no tarball', ['--package', '.'], '--package: there is no tarball .;'],
    ['an empty directory name', [''], 'the directory must not be empty'],
    ['a directory without letters', ['123'], '123: the last part of the directory is the name'],
    ['a long name', ['a'.repeat(33)], 'must have 1 to 32 letters, digits and hyphens'],
    ['the name of a package', ['portcullis'], 'portcullis is the name of a package that'],
  ])('refuses %s with exit code 2, and writes nothing', async (_what, args, message) => {
    const before = await readdir(folder)
    const { code, stdout, stderr } = await create([...args, '--yes'])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(/^create-portcullis: .*\n$/)
    expect(stderr).toContain(message)
    expect(await readdir(folder)).toEqual(before)
  })

  test('shows no question without a terminal', async () => {
    const { code, stderr } = await create(['quiet'])
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr:
        'create-portcullis: there is no terminal to ask questions on; use --yes and flags, see --help\n',
    })
  })

  test('refuses a directory that is not empty, and leaves it as it is', async () => {
    await mkdir(join(folder, 'full'))
    await writeFile(join(folder, 'full', 'notes.txt'), 'mine')
    const { code, stderr } = await create(['full', '--yes'])
    expect(code).toBe(1)
    expect(stderr).toMatch(/full is not empty: it contains notes.txt; choose another directory\n$/)
    expect(await readdir(join(folder, 'full'))).toEqual(['notes.txt'])
  })

  test('refuses a file in place of the directory', async () => {
    await writeFile(join(folder, 'file'), '')
    const { code, stderr } = await create(['file', '--json'])
    expect(code).toBe(1)
    expect(JSON.parse(stderr)).toEqual({
      error: {
        code: 'not_a_directory',
        detail: `${join(folder, 'file')} exists and is not a directory`,
      },
    })
  })

  test('reports a directory that cannot be written', async () => {
    const { code, stderr } = await create(['/dev/null/gateway', '--yes'])
    expect(code).toBe(1)
    expect(stderr).toMatch(/cannot be written \(ENOTDIR\)\n$/)
  })

  test.each([
    ['pnpm', [], 'pnpm/10.1.0 npm/? node/v24.0.0'],
    ['bun', ['--pm', 'bun'], 'npm/11.0.0 node/v24.0.0'],
    ['npm', [], ''],
  ])('names the commands of %s with %j, run by "%s"', async (manager, args, agent) => {
    const name = `by-${manager}`
    const { stdout } = await create([name, '--json', '--no-git', ...args], {
      npm_config_user_agent: agent,
    })
    expect(JSON.parse(stdout)).toMatchObject({
      git: false,
      next: [`cd ${name}`, `${manager} install`, `${manager} start`],
    })
    expect(await readdir(join(folder, name))).not.toContain('.git')
  })

  test('creates a Git repository, but none in another one', async () => {
    expect(JSON.parse((await create(['outer', '--json'])).stdout).git).toBe(true)
    const inner = await create(['outer/inner', '--json'])
    expect(JSON.parse(inner.stdout).git).toBe(false)
    expect(await readdir(join(folder, 'outer'))).toContain('.git')
    expect(await readdir(join(folder, 'outer/inner'))).not.toContain('.git')
  })

  test('an MCP server of your own needs no example of one', async () => {
    const path = await created('--kind', 'mcp', '--origin', 'http://127.0.0.1:4000')
    expect(await readdir(path)).not.toContain('server.ts')
    const manifest = await readFile(join(path, 'package.json'), 'utf8')
    expect(manifest).not.toMatch(/modelcontextprotocol|server\.ts/)
    expect(await readFile(join(path, 'dev.env'), 'utf8')).toContain(
      '\nORIGIN_URL=http://127.0.0.1:4000\n',
    )
  })

  test('a project with a tarball depends on its own copy, also in its image', async () => {
    await writeFile(join(folder, 'portcullis-0.1.0.tgz'), 'tarball')
    const path = await created('--kind', 'node', '--package', 'portcullis-0.1.0.tgz')
    const { dependencies } = JSON.parse(await readFile(join(path, 'package.json'), 'utf8'))
    expect(dependencies.portcullis).toBe('file:./portcullis-0.1.0.tgz')
    expect(await readFile(join(path, 'portcullis-0.1.0.tgz'), 'utf8')).toBe('tarball')
    const image = await readFile(join(path, 'Dockerfile'), 'utf8')
    expect(image).toContain('COPY package.json package-lock.json portcullis-0.1.0.tgz ./')
    expect(await readFile(join(path, 'README.md'), 'utf8')).toContain('names a tarball')
  })

  test('writes into a fresh repository', async () => {
    await mkdir(join(folder, 'repository', '.git'), { recursive: true })
    expect((await create(['repository', '--yes'])).code).toBe(0)
  })

  test('reports with --json what it wrote, and what to run next', async () => {
    const { code, stdout } = await create(['My Notes', '--json', '--no-git'])
    expect(code).toBe(0)
    const result = JSON.parse(stdout)
    expect(result).toMatchObject({
      directory: join(folder, 'My Notes'),
      name: 'my-notes',
      kind: 'gateway',
      next: ["cd 'My Notes'", 'npm install', 'npm start'],
    })
    for (const file of result.files) await stat(join(folder, 'My Notes', file))
    const entries = await readdir(join(folder, 'My Notes'), {
      recursive: true,
      withFileTypes: true,
    })
    expect(entries.filter((entry) => entry.isFile())).toHaveLength(result.files.length)
    expect(await readFile(join(folder, 'My Notes/package.json'), 'utf8')).toContain('"my-notes"')
  })

  test('names everything after the directory, and leaves no mark of the template', async () => {
    const path = await created('--redis', 'local')
    for (const file of await readdir(path, { recursive: true, withFileTypes: true })) {
      if (!file.isFile()) continue
      const text = await readFile(join(file.parentPath, file.name), 'utf8')
      expect(text, file.name).not.toMatch(/my-gateway|my-app|<!--|IDENTITY_PROVIDER|NOTES_OF/)
    }
  })

  test.each(PROVIDERS)(
    'writes an entry of ISSUERS for $title that the gateway accepts',
    async ({ name, title }) => {
      const flags = ['--idp', name, '--issuer', ISSUER, '--audience', "the'api"]
      const path = await created(...flags)
      const { ISSUERS } = (await varsIn(path)) as { ISSUERS: string }
      const [entry] = issuers.parse(JSON.parse(ISSUERS))
      expect(entry?.issuer).toBe(ISSUER)
      // Some presets accept the issuer as an audience, too.
      expect([entry?.audience].flat()).toContain("the'api")
      expect(await readFile(join(path, 'README.md'), 'utf8')).toContain(title)
    },
  )

  test('needs no issuer or audience for a provider that has one of its own', async () => {
    const google = (await varsIn(await created('--idp', 'google', '--audience', 'a'))) as object
    expect(google).toMatchObject({ ISSUERS: expect.not.stringContaining('"issuer"') })
    const supabase = await varsIn(await created('--idp', 'supabase', '--issuer', ISSUER))
    expect(supabase).toMatchObject({ ISSUERS: expect.not.stringContaining('"audience"') })
  })

  test('contains an issuer and an origin only if they are given', async () => {
    expect(await varsIn(await created())).toEqual({})
    expect(await varsIn(await created('--origin', 'https://a.example/api/'))).toEqual({
      ORIGIN_URL: 'https://a.example/api',
    })
  })

  test('stores the credentials of Upstash where git does not see them', async () => {
    const env = { UPSTASH_REDIS_REST_URL: 'https://a.upstash.io', UPSTASH_REDIS_REST_TOKEN: 'Az09' }
    const { code, stdout } = await create(['upstash', '--redis', 'upstash', '--yes'], env)
    expect(code).toBe(0)
    expect(stdout).not.toContain('Az09')
    const file = join(folder, 'upstash', '.dev.vars')
    expect(await readFile(file, 'utf8')).toBe(
      "UPSTASH_REDIS_REST_URL='https://a.upstash.io'\nUPSTASH_REDIS_REST_TOKEN='Az09'\n",
    )
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    const manifest = await readFile(join(folder, 'upstash', 'package.json'), 'utf8')
    expect(manifest).not.toContain('js-redis-server')
  })

  test('has the versions of the packages that this repository is tested with', async () => {
    const own = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'))
    for (const kind of ['gateway', 'node', 'middleware', 'mcp']) {
      const path = await created('--kind', kind)
      const project = JSON.parse(await readFile(join(path, 'package.json'), 'utf8'))
      const expected = { ...own.devDependencies, portcullis: own.version }
      for (const [name, range] of Object.entries({
        ...project.dependencies,
        ...project.devDependencies,
      }))
        expect({ [name]: range }).toEqual({ [name]: `^${expected[name].replace('^', '')}` })
    }
  })

  test('--version and --help need no terminal', async () => {
    expect(await create(['--version'])).toMatchObject({ code: 0, stdout: '0.1.0\n', stderr: '' })
    const { code, stdout } = await create(['--help'])
    expect(code).toBe(0)
    for (const { name } of PROVIDERS) expect(stdout).toContain(name)
  })
})

import { execFile, spawnSync } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { builtPackage } from '../dev/start/build.ts'
import { type Checkout, makeCheckout } from '../dev/start/checkout.ts'
import { IS_LONG } from '../harness/long.ts'

const BUNDLE = 'dist/portcullis.mjs'
/** Another Node of this machine than that of the tests. */
const NODE_20 = ['/usr/bin', ...(process.env.PATH ?? '').split(':')]
  .map((path) => join(path, 'node'))
  .find((node) => spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout?.startsWith('v20.'))
/** A document with a pattern that only the checker of run times, a compressed module, refuses. */
const SLOW_PATTERN = {
  openapi: '3.1.0',
  info: { title: 'slow', version: '1' },
  paths: {
    '/x': {
      get: {
        parameters: [{ name: 'q', in: 'query', schema: { type: 'string', pattern: '^(a+)+$' } }],
        responses: { 200: { description: 'ok' } },
      },
    },
  },
}

describe('the installed command line', () => {
  let checkout: Checkout
  let folder: string
  let offline: Record<string, string>

  beforeAll(async () => {
    checkout = await makeCheckout()
    folder = await mkdtemp(join(tmpdir(), 'portcullis-install-'))
    offline = { npm_config_cache: join(folder, 'cache'), npm_config_offline: 'true' }
    await cp(await builtPackage(), join(checkout.path, 'dist'), { recursive: true })
  })

  afterAll(async () => {
    await checkout.close()
    await rm(folder, { recursive: true, force: true })
  })

  test('is JavaScript that needs only Node, and no packages', async () => {
    const bundle = join(folder, BUNDLE)
    await cp(join(checkout.path, 'dist'), join(folder, 'dist'), { recursive: true })
    const run = checkout.run(['node', '--no-experimental-strip-types', bundle, '--version'])
    expect(await run.ended).toEqual({ code: 0, stdout: '0.1.0\n', stderr: '' })
    expect((await stat(join(checkout.path, BUNDLE))).mode & 0o111).toBe(0o111)
    expect(await readFile(bundle, 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/)
  })

  test.runIf(NODE_20)('runs in the oldest supported Node, outside of any project', async () => {
    const alone = await mkdtemp(join(folder, 'alone-'))
    await cp(join(checkout.path, 'dist/cli'), join(alone, 'cli'), { recursive: true })
    await cp(join(checkout.path, BUNDLE), join(alone, 'portcullis.mjs'))
    const run = (...args: string[]) =>
      promisify(execFile)(NODE_20 ?? '', [join(alone, 'portcullis.mjs'), ...args], {
        cwd: alone,
        env: {},
      })
    expect((await run('complete', '--', 'doc')).stdout).toMatch(/^doctor\t/)
    const { stdout } = await run('clients', 'hash-secret', '--json')
    expect(JSON.parse(stdout)).toHaveProperty('clientSecret')
    const diagnosis = await run('doctor', '--json').catch((error) => error)
    expect(diagnosis.code).toBe(1)
    expect(JSON.parse(diagnosis.stdout).findings[0].seen).toContain('is missing')
    await writeFile(join(alone, 'api.json'), JSON.stringify(SLOW_PATTERN))
    const imported = await run('openapi', 'import', 'api.json', '--out', 'routes.ts', '--json')
    expect(imported.stdout).toContain('it takes exponential time for some texts')
  })

  // In each run, test/docs/commands-first.slow.test.ts runs a command of the guides so.
  test.runIf(IS_LONG)('runs by its name in a checkout', async () => {
    const { code, stdout } = await checkout.run(['npx', 'portcullis', '--help'], offline).ended
    expect(code).toBe(0)
    expect(stdout).toContain('Usage: portcullis')
  })

  test('runs from its sources as an npm script', async () => {
    const run = checkout.run(['npm', 'run', '-s', 'portcullis', '--', 'clients', 'lst'])
    const { code, stderr } = await run.ended
    expect(code).toBe(2)
    expect(stderr).toContain("unknown command 'lst'")
  })

  test('runs in a package that depends on the checkout', async () => {
    const elsewhere = join(folder, 'elsewhere')
    const script = [
      `mkdir ${elsewhere} && cd ${elsewhere} && npm init -y >/dev/null`,
      `npm install --ignore-scripts --no-audit --no-fund ${checkout.path} >/dev/null`,
      './node_modules/.bin/portcullis --version',
    ].join('\n')
    const { code, stdout, stderr } = await checkout.run(['sh', '-euc', script], offline).ended
    expect({ code, stdout }, stderr).toEqual({ code: 0, stdout: '0.1.0\n' })
  })

  test('is part of a packed package', async () => {
    const pack = ['npm', 'pack', '--dry-run', '--ignore-scripts', '--json'] as const
    const { code, stdout } = await checkout.run(pack, offline).ended
    expect(code).toBe(0)
    const [packed] = Object.values(JSON.parse(stdout)) as { files: { path: string }[] }[]
    expect(packed?.files.map(({ path }) => path)).toContain(BUNDLE)
  })
})

import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { requireNode } from '../../cli/commands/dev.ts'
import { ROOT } from '../harness/process.ts'
import { runCli } from './command-line.ts'

describe('portcullis dev refuses with a helpful message', () => {
  let folder: string
  let count = 0

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'portcullis-dev-'))
  })

  afterAll(() => rm(folder, { recursive: true, force: true }))

  /** Creates a project with this `wrangler.toml`, and optionally with wrangler. */
  async function project(toml: string | undefined, hasWrangler = true): Promise<string> {
    const path = join(folder, `project-${++count}`)
    await mkdir(join(path, 'node_modules'), { recursive: true })
    const manifest = { name: 'notes', dependencies: { portcullis: '^0.1.0' } }
    await writeFile(join(path, 'package.json'), JSON.stringify(manifest))
    if (toml !== undefined) await writeFile(join(path, 'wrangler.toml'), toml)
    const wrangler = 'node_modules/wrangler'
    if (hasWrangler) await symlink(join(ROOT, wrangler), join(path, wrangler))
    return path
  }

  test('a folder without wrangler.toml', async () => {
    const cwd = await project(undefined)
    const { code, stdout, stderr } = await runCli(['dev'], { cwd })
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toBe(
      `portcullis: there is no wrangler.toml and no portcullis.config.ts in ${cwd}; \`npm run create -- DIRECTORY\` in a checkout of portcullis creates a project, and \`portcullis redis\` runs a Redis for an app on Node\n`,
    )
  })

  test('a Node that is too old, and in the same message that there is no wrangler.toml', async () => {
    const configured = await project('name = "notes"')
    const bare = await project(undefined)
    const old = /^this is Node 20\.20\.2, and wrangler needs Node 22\.12 or later/
    expect(() => requireNode('20.20.2', configured)).toThrow(old)
    expect(() => requireNode('20.20.2', configured)).not.toThrow('wrangler.toml')
    expect(() => requireNode('20.20.2', bare)).toThrow(old)
    expect(() => requireNode('20.20.2', bare)).toThrow(
      `. Also, there is no wrangler.toml and no portcullis.config.ts in ${bare};`,
    )
    expect(() => requireNode('22.12.0', bare)).not.toThrow()
  })

  test('a project whose packages are not installed', async () => {
    const cwd = await project('name = "notes"', false)
    const { code, stderr } = await runCli(['dev'], { cwd })
    expect(code).toBe(1)
    expect(stderr).toContain(`wrangler is not installed in ${cwd}; run \`npm install\``)
  })

  test('a configuration that is not TOML, with its line', async () => {
    const { code, stderr } = await runCli(['dev'], { cwd: await project('name = "a"\nmain =\n') })
    expect(code).toBe(1)
    expect(stderr).toMatch(/^portcullis: wrangler\.toml:2:\d+: /)
  })

  test('issuers in the configuration that are not valid, as JSON with --json', async () => {
    const cwd = await project(`[vars]\nISSUERS = '[{ "issuer": "https://a.example" }]'\n`)
    const { code, stdout, stderr } = await runCli(['dev', '--json'], { cwd })
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    const { error } = JSON.parse(stderr)
    expect(error.code).toBe('not_running')
    expect(error.detail).toContain('ISSUERS[0].audience')
  })

  test('another policy file, which only a checkout reads', async () => {
    const cwd = await project('name = "notes"')
    await writeFile(join(cwd, 'other.ts'), '')
    const { code, stderr } = await runCli(['dev'], { cwd, env: { PORTCULLIS_CONFIG: 'other.ts' } })
    expect(code).toBe(1)
    expect(stderr).toContain('PORTCULLIS_CONFIG: only a checkout of Portcullis reads')
  })

  test('an invalid port', async () => {
    const cwd = await project('name = "notes"')
    const { code, stderr } = await runCli(['dev'], { cwd, env: { PORT: 'web' } })
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: 'portcullis: PORT must be a number from 1 to 65535\n',
    })
  })
})

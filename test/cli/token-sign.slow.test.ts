import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ALL_CLAIMS, ALL_FLAGS, ALL_SECONDS } from '../dev/start/requested-claims.ts'
import { runHere } from './command-here.ts'
import { runCli } from './command-line.ts'

describe('portcullis token sign', () => {
  let folder: string
  let project: string

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'portcullis-token-sign-'))
    project = join(folder, 'project')
    await mkdir(join(project, 'src'), { recursive: true })
    const manifest = { name: 'my-gateway', dependencies: { portcullis: '^0.1.0' } }
    await writeFile(join(project, 'package.json'), JSON.stringify(manifest))
    await writeFile(join(project, 'wrangler.toml'), '')
  })

  afterAll(() => rm(folder, { recursive: true, force: true }))

  async function verified(token: string) {
    const vars = parseEnv(await readFile(join(project, '.dev.vars'), 'utf8'))
    const { PUBLIC_URL: issuer = '', SIGNING_KEYS = '' } = vars
    const { keys } = JSON.parse(SIGNING_KEYS) as JSONWebKeySet
    const keySet = createLocalJWKSet({ keys: keys.map(({ d, ...key }) => key) })
    return await jwtVerify(token, keySet, { issuer, audience: issuer, typ: 'at+jwt' })
  }

  test.each([
    ['by its name', ['token', 'sign']],
    ['as the default of its group', ['token']],
  ])('prints a token with all requested claims, %s', async (_how, command) => {
    const { code, stdout, stderr } = await runCli([...command, ...ALL_FLAGS], { cwd: project })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const { iat = 0, exp = 0, iss, aud, ...claims } = (await verified(stdout.trim())).payload
    expect(claims).toEqual(ALL_CLAIMS)
    expect(exp - iat).toBe(ALL_SECONDS)
  })

  test('uses the keys of the project in a folder below it, and writes nothing there', async () => {
    const below = join(project, 'src')
    const { stdout } = await runHere(['token', '--subject', 'alice', '--json'], { cwd: below })
    const { token } = JSON.parse(stdout) as { readonly token: string }
    const { payload } = await verified(token)
    expect(payload.sub).toBe('alice')
    expect((payload.exp ?? 0) - (payload.iat ?? 0)).toBe(3_600)
    expect(await readdir(below)).toEqual([])
  })

  test('its secrets are in a file that git ignores', async () => {
    expect(await readFile(join(project, '.gitignore'), 'utf8')).toBe('.dev.vars\n')
  })

  describe('in a project for Node', () => {
    const SUBJECT = ['token', '--subject', 'alice']
    let server: string
    beforeAll(async () => {
      server = join(folder, 'server')
      await mkdir(server)
      const manifest = { name: 'my-server', dependencies: { portcullis: '^0.1.0' } }
      await writeFile(join(server, 'package.json'), JSON.stringify(manifest))
    })

    test('no secrets are written, and the message says where keys come from', async () => {
      const { code, stdout, stderr } = await runHere(SUBJECT, { cwd: server })
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
      expect(stderr).toMatch(/set SIGNING_KEYS and PUBLIC_URL .* --values/)
      expect(await readdir(server)).toEqual(['package.json'])
    })

    test('the keys are those of the file of serve', async () => {
      const values = join(folder, 'gateway.env')
      await writeFile(values, await readFile(join(project, '.dev.vars'), 'utf8'))
      const { code, stdout } = await runHere([...SUBJECT, '--values', values], { cwd: server })
      expect(code).toBe(0)
      expect((await verified(stdout.trim())).payload.sub).toBe('alice')
      expect(await readdir(server)).toEqual(['package.json'])
    })
  })

  test.each([
    ['no subject', ['token'], "required option '--subject <subject>' not specified"],
    ['an empty subject', ['token', '--subject', ''], '--subject must not be empty'],
    ['an empty subject of the earlier name', ['token', '--sub', ''], '--sub must not be empty'],
    ['an empty role', ['token', '--subject', 'a', '--role', ''], '--role must not be empty'],
    ['another unit', ['token', '--sub', 'a', '--ttl', '1w'], 'It must look like 90s, 15m, 1h'],
  ])('refuses %s with exit code 2', async (_what, args, message) => {
    const { code, stdout, stderr } = await runHere(args, { cwd: project })
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(message)
  })

  test('refuses keys that are none, without repeating them', async () => {
    const env = { SIGNING_KEYS: '{"keys":["secret"]}' }
    const outcome = await runHere(['token', '--sub', 'a'], { cwd: project, env })
    expect(outcome).toEqual({
      code: 1,
      stdout: '',
      stderr:
        'portcullis: invalid_signing_keys: SIGNING_KEYS is not a private JWK Set with an active key\n',
    })
  })

  test.each([['token', '--sub', 'a'], ['dev']])(
    '%s outside a project names the command that creates one',
    async (...args) => {
      const { code, stderr } = await runHere(args, { cwd: folder })
      expect(code).toBe(2)
      expect(stderr).toContain(
        '`npm run create -- DIRECTORY` in a checkout of portcullis creates a project',
      )
    },
  )
})

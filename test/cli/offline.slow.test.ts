import { createHash, randomUUID } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { parseSigningKeys } from '../../src/access/tokens/signing-keys.ts'
import { configuredClients } from '../../src/features/authorization-server/schemas/client.ts'
import { createKey, mint } from '../harness/issuer.ts'
import { runHere } from './command-here.ts'
import { runCli } from './command-line.ts'

describe('token decode', () => {
  test('prints the claims of a token, and that they are not verified', async () => {
    const token = await mint(await createKey('k'), { claims: { sub: 'ali\u001b[1mce', exp: 0 } })
    const forged = token.replace(/[^.]+$/, 'AAAA')
    const { code, stdout, stderr } = await runCli(['token', 'decode', '-'], {
      input: `${forged}\n`,
    })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/^NOT VERIFIED: /)
    expect(stdout).toMatch(/^sub +ali\\u\{1b\}\[1mce$/m)
    expect(stdout).toMatch(/^exp +0 \(1970-01-01T00:00:00\.000Z\)$/m)
  })

  test('prints JSON with --json', async () => {
    const token = await mint(await createKey('k'), { claims: { sub: 'alice' } })
    const { code, stdout } = await runHere(['token', 'decode', '--json', token])
    expect(code).toBe(0)
    const decoded = JSON.parse(stdout)
    expect(decoded).toMatchObject({ verified: false, claims: { sub: 'alice' } })
    expect(decoded.header.alg).toBe('ES256')
  })

  test.each([randomUUID(), 'a.b.c', 'e30.e30', '!!.!!.!!', 'W10.W10.AA'])(
    'refuses %s, which is not a JWT',
    async (text) => {
      const { code, stdout, stderr } = await runHere(['token', 'decode', text])
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
      expect(stderr).toContain('not_a_jwt')
      expect(stderr).not.toContain(text)
    },
  )

  test('refuses standard input that is empty or too long', async () => {
    for (const input of ['', ' \n', 'x'.repeat(100_000)]) {
      const { code, stdout } = await runHere(['token', 'decode', '-'], { input })
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    }
  })
})

describe('clients hash-secret', () => {
  const hash = (secret: string) => createHash('sha256').update(secret).digest('base64url')

  test('prints an entry for CLIENTS that the gateway accepts, with a secret of 256 bits [S41]', async () => {
    const { code, stdout, stderr } = await runCli(['clients', 'hash-secret'])
    expect(code).toBe(0)
    const [, id = ''] = /^clientId +(\S+)$/m.exec(stdout) ?? []
    const [, secret = ''] = /^clientSecret +(\S+)$/m.exec(stdout) ?? []
    expect(secret).toMatch(/^pcs_[\w-]{43}$/)
    const clients = JSON.parse(stdout.split('\n\n')[1] ?? '')
    expect(clients).toMatchObject([{ id, roles: ['operator'], secretSha256: hash(secret) }])
    expect(configuredClients.safeParse(clients).success).toBe(true)
    expect(stderr).not.toContain(secret)
    const again = await runHere(['clients', 'hash-secret'])
    expect(again.stdout).not.toContain(secret)
  })

  test('hashes a given secret, and does not print it', async () => {
    const id = randomUUID()
    const secret = 'a secret that the operator chose'
    const args = ['clients', 'hash-secret', '-', '--json', '--id', id, '--name', 'ci']
    const { code, stdout, stderr } = await runHere([...args, '--role', 'a', '--role', 'b'], {
      input: `${secret}\n`,
    })
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const answer = JSON.parse(stdout)
    expect(answer.entry).toMatchObject({ id, name: 'ci', roles: ['a', 'b'] })
    expect(answer.entry.secretSha256).toBe(hash(secret))
    expect(stdout).not.toContain(secret)
  })

  test.each([
    [['-'], 'too short'],
    [['--id', 'operator'], ''],
  ])('refuses %j [S47]', async (args, input) => {
    const { code, stdout } = await runHere(['clients', 'hash-secret', ...args], { input })
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  })
})

describe('keys', () => {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-keys-'))
  const file = join(folder, 'keys.json')
  const keysIn = (text: string) => parseSigningKeys(JSON.parse(text))
  afterAll(() => rmSync(folder, { recursive: true }))

  test('generate prints a value of SIGNING_KEYS that the gateway accepts', async () => {
    const { code, stdout, stderr } = await runHere(['keys', 'generate', '--alg', 'EdDSA'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(keysIn(stdout)).toMatchObject([{ kty: 'OKP', alg: 'EdDSA' }])
  })

  test('generate, rotate and list use a file that only its owner reads, and print no secret', async () => {
    const generated = await runCli(['keys', 'generate', '--file', file])
    expect(generated.code).toBe(0)
    expect((statSync(file).mode & 0o777).toString(8)).toBe('600')
    const [first] = keysIn(readFileSync(file, 'utf8'))
    const again = await runHere(['keys', 'generate', '--file', file])
    expect({ code: again.code, stdout: again.stdout }).toEqual({ code: 1, stdout: '' })
    expect(again.stderr).toContain('keys_file: ')
    expect(again.stderr).toContain('already has keys; rotate them')
    expect(keysIn(readFileSync(file, 'utf8'))).toEqual([first])

    const rotated = await runHere(['keys', 'rotate', '--file', file])
    expect(rotated.code).toBe(0)
    const set = keysIn(readFileSync(file, 'utf8'))
    expect(set).toHaveLength(2)
    const listed = await runHere(['keys', 'list', '--file', file, '--json'])
    expect(JSON.parse(listed.stdout)).toMatchObject({
      keys: [{ state: 'next' }, { kid: first?.kid, state: 'active' }],
    })
    for (const { d = '' } of set)
      for (const { stdout, stderr } of [generated, rotated, listed])
        expect(stdout + stderr).not.toContain(d)
  })

  test.each([
    [['generate', '--force'], '--force needs --file'],
    [['generate', '--alg', 'HS256'], 'Allowed choices are ES256, RS256, Ed25519, EdDSA'],
    [['rotate'], "required option '--file <path>' not specified"],
  ])('refuses %j with status 2', async (args, message) => {
    const { code, stdout, stderr } = await runHere(['keys', ...args])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(message)
  })
})

import { rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { decodeProtectedHeader } from 'jose'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { generateSigningKey, rotated } from '../../../dev/keys/key-set.ts'
import { parseSigningKeys, type SigningJwk } from '../../../src/access/tokens/signing-keys.ts'
import { testInLong } from '../../harness/long.ts'
import { type Checkout, makeCheckout, type Outcome } from './checkout.ts'

describe('npm run -s keys', () => {
  let checkout: Checkout

  beforeAll(async () => {
    checkout = await makeCheckout()
  })

  afterAll(() => checkout.close())

  afterEach(async () => {
    for (const name of ['.dev.vars', 'jwks.json', 'bad.json', 'no.json', 'odd.json'])
      await rm(join(checkout.path, name), { force: true })
  })

  /** Starts the script without npm, which takes longer than the script. */
  const keys = (...args: string[]): Promise<Outcome> =>
    checkout.run(['node', 'dev/keys.ts', ...args]).ended

  /** Expects that the command succeeds. Returns its output. */
  async function printed(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await keys(...args)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    return stdout
  }

  const setIn = async (name: string): Promise<SigningJwk[]> =>
    parseSigningKeys(JSON.parse(await checkout.file(name)))
  const setInDevVars = async () =>
    parseSigningKeys(JSON.parse(parseEnv(await checkout.file('.dev.vars')).SIGNING_KEYS ?? ''))
  const listed = async (...args: string[]) => JSON.parse(await printed('list', '--json', ...args))

  it('generate creates a file that only its owner can read, and prints the next step', async () => {
    const args = ['generate', '--file', 'jwks.json', '--alg', 'EdDSA']
    const { ended } = checkout.run(['npm', 'run', '-s', 'keys', '--', ...args])
    const { code, stdout: output, stderr } = await ended
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const [key] = await setIn('jwks.json')
    expect(key).toMatchObject({ kty: 'OKP', alg: 'EdDSA', use: 'sig' })
    expect(((await stat(join(checkout.path, 'jwks.json'))).mode & 0o777).toString(8)).toBe('600')
    expect(output).toContain(key?.kid)
    expect(output).toContain('npx wrangler secret put SIGNING_KEYS < jwks.json')
    expect(output).not.toContain(key?.d)
  })

  testInLong('generate prints a key set for -, and writes no file', async () => {
    const args = ['generate', '--file', '-', '--alg', 'RS256', '--alg', 'ES256']
    const set = parseSigningKeys(JSON.parse(await printed(...args)))
    expect(set.map(({ alg }) => alg)).toEqual(['RS256', 'ES256'])
    await expect(checkout.file('-')).rejects.toThrow('ENOENT')
    await expect(checkout.file('.dev.vars')).rejects.toThrow('ENOENT')
  })

  it('generate replaces no file, valid or invalid, without --force', async () => {
    await printed('generate')
    const before = await checkout.file('.dev.vars')
    expect(await keys('generate')).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('already has keys'),
    })
    expect(await checkout.file('.dev.vars')).toBe(before)
    const [old] = await setInDevVars()
    await printed('generate', '--force', '--alg', 'RS256')
    const [key, ...others] = await setInDevVars()
    expect(others).toEqual([])
    expect(key?.alg).toBe('RS256')
    expect(await checkout.file('.dev.vars')).not.toContain(old?.d)
    const { SIGNING_KEYS: _, ...kept } = parseEnv(before)
    expect(parseEnv(await checkout.file('.dev.vars'))).toMatchObject(kept)

    await writeFile(join(checkout.path, 'bad.json'), 'precious')
    expect((await keys('generate', '--file', 'bad.json')).code).toBe(1)
    expect(await checkout.file('bad.json')).toBe('precious')
  })

  it('rotate adds a new key at the front, ten minutes before it signs [S46]', async () => {
    await printed('generate')
    const [old] = await setInDevVars()
    const output = await printed('rotate')
    const set = await setInDevVars()
    expect(set).toHaveLength(2)
    const [next, last] = set as [SigningJwk, SigningJwk]
    expect(last).toMatchObject({ kid: old?.kid, exp: (next.nbf ?? 0) + 3_900 })
    expect(next.alg).toBe('ES256')
    expect(next.exp).toBeUndefined()
    expect(output).toContain(new Date((next.nbf ?? 0) * 1000).toISOString().slice(0, 19))
    expect(output).toContain('npm start')
    for (const { d } of set) expect(output).not.toContain(d)
    // A running gateway does not have the new key yet.
    const token = checkout.run(['node', 'dev/token.ts', '--sub', 'alice'])
    expect(decodeProtectedHeader((await token.ended).stdout.trim()).kid).toBe(old?.kid)
  })

  it('list prints the state of each key, and no private member', async () => {
    const [a, b, c] = await Promise.all([1, 2, 3].map(() => generateSigningKey('ES256')))
    const now = Date.now()
    const [first, second, third] = [a, b, c] as [SigningJwk, SigningJwk, SigningJwk]
    const set = [...rotated([second], first, now), { ...third, exp: 1_700_000_000 }]
    await writeFile(join(checkout.path, 'jwks.json'), JSON.stringify({ keys: set }))
    expect(await listed('--file', 'jwks.json')).toEqual({
      keys: [
        { kid: first.kid, alg: 'ES256', state: 'next', notBefore: expect.any(String) },
        { kid: second.kid, alg: 'ES256', state: 'active', expiresAt: expect.any(String) },
        { kid: third.kid, alg: 'ES256', state: 'expired', expiresAt: '2023-11-14T22:13:20Z' },
      ],
    })
    const table = await printed('list', '--file', 'jwks.json')
    expect(table).toMatch(new RegExp(`^${third.kid}  ES256  expired   verifies until 2023-`, 'm'))
    for (const { d } of set) expect(table).not.toContain(d)
    // The next rotation drops the expired key.
    await printed('rotate', '--file', 'jwks.json')
    expect((await setIn('jwks.json')).map(({ kid }) => kid).slice(1)).toEqual([
      first.kid,
      second.kid,
    ])
  })

  it('an error is one line with status 1, without secrets', async () => {
    await writeFile(join(checkout.path, 'no.json'), '{"secret')
    await writeFile(join(checkout.path, 'odd.json'), '{"keys":[{"kty":"EC","d":"hidden"}]}')
    for (const [file, message] of [
      ['none.json', 'has no keys; run generate first'],
      ['no.json', 'contains no JSON'],
      ['odd.json', 'contains no valid signing keys'],
      ['none/of/these.json', 'has no keys'],
    ] as const) {
      for (const command of ['list', 'rotate']) {
        const { code, stdout, stderr } = await keys(command, '--file', file)
        expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
        expect(stderr).toContain(message)
        expect(stderr).not.toMatch(/secret|hidden|\n./)
      }
    }
    expect((await keys('list')).stderr).toContain('.dev.vars has no keys')
    expect((await keys('generate', '--file', 'none/of/these.json')).code).toBe(1)
  })

  testInLong('--help lists every command and option', async () => {
    const help = await printed('--help')
    for (const word of ['generate', 'rotate', 'list', '--file', '--alg', '--force', '--json'])
      expect(help).toContain(word)
  })

  it.each([
    [[], 'missing command: generate, rotate or list'],
    [['revoke'], 'unknown command revoke'],
    [['constructor'], 'unknown command constructor'],
    [['list', 'all'], 'list: unexpected argument all'],
    [['list', '--force'], 'list: unknown option --force'],
    [['rotate', '--json'], 'rotate: unknown option --json'],
    [['generate', '--alg', 'HS256'], '--alg must be ES256, RS256, Ed25519, EdDSA'],
    [['rotate', '--alg', 'ES256', '--alg', 'RS256'], 'rotate: --alg may be given once'],
    [['generate', '--file', ''], '--file must not be empty'],
    [['generate', '--key', 'x'], "'--key'"],
  ])('refuses %j with status 2, and writes nothing', async (args, message) => {
    const { code, stdout, stderr } = await keys(...args)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(message)
    await expect(checkout.file('.dev.vars')).rejects.toThrow('ENOENT')
  })
})

describe('a rotation', () => {
  const now = 1_800_000_000_000
  const exps = (set: readonly SigningJwk[]) => set.map(({ alg, exp }) => [alg, exp])
  const end = 1_800_000_000 + 600 + 3_900

  it('retires the keys of its algorithm, and keeps those of other algorithms', async () => {
    const [es, rs, next] = await Promise.all(
      (['ES256', 'RS256', 'ES256'] as const).map(generateSigningKey),
    )
    const set = [es, rs] as SigningJwk[]
    expect(exps(rotated(set, next as SigningJwk, now))).toEqual([
      ['ES256', undefined],
      ['ES256', end],
      ['RS256', undefined],
    ])
  })

  it('retires all other keys if its algorithm is new, or if they were already retiring', async () => {
    const [es, ed, again] = await Promise.all(
      (['ES256', 'EdDSA', 'ES256'] as const).map(generateSigningKey),
    )
    const changed = rotated([es as SigningJwk], ed as SigningJwk, now)
    expect(exps(changed)).toEqual([
      ['EdDSA', undefined],
      ['ES256', end],
    ])
    const later = now + 60_000
    expect(exps(rotated(changed, again as SigningJwk, later))).toEqual([
      ['ES256', undefined],
      ['EdDSA', end + 60],
      ['ES256', end],
    ])
  })

  it('never extends the lifetime of a key, and drops keys that would never sign', async () => {
    const [old, far, next] = await Promise.all(
      (['ES256', 'ES256', 'ES256'] as const).map(generateSigningKey),
    )
    const set = rotated(
      [
        { ...(far as SigningJwk), nbf: end + 1 },
        { ...(old as SigningJwk), exp: end - 1_000 },
      ],
      next as SigningJwk,
      now,
    )
    expect(set.map(({ kid, exp }) => [kid, exp])).toEqual([
      [next?.kid, undefined],
      [old?.kid, end - 1_000],
    ])
    expect(() => parseSigningKeys({ keys: set })).not.toThrow()
  })
})

import { randomUUID } from 'node:crypto'
import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { describeInLong, testInLong } from '../harness/long.ts'
import { type Credentials, type Operator, startOperator } from './operator.ts'

let operator: Operator

beforeAll(async () => {
  operator = await startOperator()
})

afterAll(() => operator?.close())

const mint = (subject: string, ...args: string[]) =>
  operator.runJson('token', 'mint', '--sub', subject, '--role', 'reader', ...args)

/** Runs a command that fails. Returns its exit code and the error that it prints as JSON. */
async function failure(...args: string[]): Promise<[number | null, { code: string }]> {
  const { code, stdout, stderr } = await operator.attempt([...args, '--json'])
  expect(stdout).toBe('')
  return [code, JSON.parse(stderr).error]
}

const notFound = [1, expect.objectContaining({ code: 'not_found', requestId: expect.any(String) })]
const invalid = [1, expect.objectContaining({ code: 'invalid_input', errors: expect.any(Array) })]

testInLong('doctor sees the gateway, its operators and its audit trail', async () => {
  await expect
    .poll(async () => {
      const { code, stdout } = await operator.attempt(['doctor', '--url', operator.url, '--json'])
      expect(code).toBe(0)
      const { findings } = JSON.parse(stdout) as { findings: { level: string; check: string }[] }
      return findings.filter(({ level }) => level === 'ok').map(({ check }) => check)
    })
    .toEqual(['gateway', "operators' API", 'queue and database'])
})

describe('token', () => {
  test('mint prints a token that is accepted only where its roles permit it', async () => {
    const { code, stdout, stderr } = await operator.attemptInProcess([
      'token',
      'mint',
      '--sub',
      'alice',
      '--role',
      'reader',
      '--ttl',
      '10m',
    ])
    expect(code).toBe(0)
    expect(stdout).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/)
    expect(stderr).toContain('It is shown once.')
    expect(stderr).not.toContain(stdout.trim())
    expect(await operator.statusFor(stdout.trim())).toBe(200)
    const { token = '' } = await operator.runJson('token', 'mint', '--sub', 'alice')
    expect(await operator.statusFor(token)).toBe(403)
  })

  test('mint names the subject that is given, by each name of the option, and none that is no name', async () => {
    const mintHere = (...args: string[]) =>
      operator.attemptInProcess(['token', 'mint', '--json', ...args])
    for (const [option, subject] of [
      ['--sub', 'alice'],
      ['--subject', 'Zoë 登录'],
    ] as const) {
      const { code, stdout, stderr } = await mintHere(option, subject)
      expect(code, stderr).toBe(0)
      expect(decodeJwt(JSON.parse(stdout).token).sub).toBe(subject)
    }
    for (const [args, expected] of [
      [[], 2],
      [['--sub', ''], 1],
      [['--sub', 'a\nb'], 1],
      [['--sub', 'x'.repeat(300)], 1],
    ] as const) {
      const { code, stdout } = await mintHere(...args)
      expect([args, code, stdout]).toEqual([args, expected, ''])
    }
  })

  testInLong('mint reports invalid input', async () => {
    expect(await failure('token', 'mint', '--sub', 'alice', '--ttl', '10s')).toEqual(invalid)
  })

  testInLong('verify queries the gateway, and exits with 1 for an inactive token', async () => {
    const { token = '', tokenId } = await mint('alice', '--format', 'opaque')
    const answer = await operator.attempt(['token', 'verify', '--json', '-'], `${token}\n`)
    expect(answer.code).toBe(0)
    expect(JSON.parse(answer.stdout)).toMatchObject({ active: true, sub: 'alice', jti: tokenId })
    expect(await operator.run('token', 'verify', token)).toMatch(/^sub +alice$/m)
    const other = await operator.attempt(['token', 'verify', randomUUID()])
    expect([other.code, other.stdout]).toEqual([1, 'active  no\n'])
  })
})

describe('revoke', () => {
  test('revokes all tokens of a subject, is listed, and can be deleted [S33]', async () => {
    const { token = '' } = await mint('bob')
    expect(await operator.statusFor(token)).toBe(200)
    const { id = '' } = await operator.runJson('revoke', 'subject', 'bob', '--reason', 'left')
    expect(await operator.statusFor(token)).toBe(401)
    expect(await operator.run('revocations', 'list')).toMatch(
      new RegExp(`^${id} +subject +bob +- +- +platform +left `, 'm'),
    )
    const again = await operator.attempt(['revoke', 'subject', 'bob'])
    expect(again.stderr).toMatch(/Already revoked until 20\S+Z, now until 20\S+Z/)
    await operator.run('revocations', 'delete', /^id +(\S+)/m.exec(again.stdout)?.[1] ?? '')
    expect(await operator.run('revocations', 'delete', id)).toContain(id)
    expect(await operator.statusFor(token)).toBe(200)
    expect(await failure('revocations', 'delete', id)).toEqual(notFound)
  })

  test('revokes one token, by the token or by its id, and no other token of the subject [S30]', async () => {
    const [one, two, three] = await Promise.all([mint('carol'), mint('carol'), mint('carol')])
    const byToken = await operator.attempt(['revoke', 'token', '-'], one.token)
    expect(byToken.code).toBe(0)
    await operator.run('revoke', 'token', two.tokenId ?? '')
    expect(await operator.statusFor(one.token ?? '')).toBe(401)
    expect(await operator.statusFor(two.token ?? '')).toBe(401)
    expect(await operator.statusFor(three.token ?? '')).toBe(200)
  })

  testInLong('reports invalid input', async () => {
    const reason = 'x'.repeat(257)
    expect(await failure('revoke', 'subject', 'bob', '--reason', reason)).toEqual(invalid)
  })
})

describe('clients', () => {
  async function tokenFor(id: string, secret: string): Promise<Response> {
    return fetch(`${operator.url}/oauth/token`, {
      method: 'POST',
      headers: {
        Authorization: `Basic ${btoa(`${id}:${secret}`)}`,
        'Content-Type': 'application/x-www-form-urlencoded',
      },
      body: 'grant_type=client_credentials',
    })
  }

  test('are created, shown without their secret, rotated, and disabled', async () => {
    const made = await operator.runJson(
      ...['clients', 'create', '--name', 'billing', '--grant', 'client_credentials'],
      ...['--role', 'reader', '--scope', 'orders:read'],
    )
    const { clientId = '', clientSecret = '' } = made
    const granted = await tokenFor(clientId, clientSecret)
    expect(granted.status).toBe(200)
    const { access_token } = (await granted.json()) as { access_token: string }
    expect(await operator.statusFor(access_token)).toBe(200)

    const shown = await operator.run('clients', 'show', clientId)
    const listed = await operator.run('clients', 'list')
    expect(shown).toMatch(/^scopes +orders:read$/m)
    expect(listed).toMatch(new RegExp(`^${clientId} +billing +client_credentials `, 'm'))
    expect(shown + listed).not.toContain(clientSecret)

    const rotated = await operator.runJson('clients', 'rotate-secret', clientId)
    expect((await tokenFor(clientId, clientSecret)).status).toBe(401)
    expect((await tokenFor(clientId, rotated.clientSecret ?? '')).status).toBe(200)

    await operator.run('clients', 'disable', clientId)
    expect((await tokenFor(clientId, rotated.clientSecret ?? '')).status).toBe(401)
    expect(await operator.statusFor(access_token)).toBe(401)
  })

  test('print a secret once on stdout, and never on stderr', async () => {
    const { stdout, stderr } = await operator.attempt([
      'clients',
      'create',
      '--name',
      'web',
      '--grant',
      'token_exchange',
    ])
    const [, secret = ''] = /^clientSecret +(\S+)\n\n/.exec(stdout) ?? []
    expect(secret.length).toBeGreaterThan(40)
    expect(stdout.split(secret).length).toBe(2)
    expect(stderr).toBe('Copy clientSecret now: it is shown once and not stored.\n')
  })

  test('that do not exist, or are invalid, are reported', async () => {
    const id = randomUUID()
    expect(await failure('clients', 'show', id)).toEqual(notFound)
    expect(await failure('clients', 'rotate-secret', id)).toEqual(notFound)
    expect(await failure('clients', 'disable', id)).toEqual(notFound)
    const long = ['clients', 'create', '--name', 'x'.repeat(129), '--grant', 'refresh_token']
    expect(await failure(...long)).toEqual(invalid)
  })
})

describe('api-keys', () => {
  test('are created, listed without their secret, rotated, and disabled', async () => {
    const made = await operator.runJson(
      ...['api-keys', 'create', '--name', 'nightly', '--subject', 'reports', '--role', 'reader'],
      ...['--expires-in', '30d'],
    )
    const { id = '', apiKey = '' } = made
    expect(await operator.statusFor(apiKey)).toBe(200)
    const listed = await operator.run('api-keys', 'list')
    expect(listed).toMatch(
      new RegExp(`^${id} +${apiKey.slice(0, 9)} +nightly +reports +reader `, 'm'),
    )
    expect(listed).not.toContain(apiKey)
    expect(await operator.runJson('api-keys', 'lookup', apiKey)).toMatchObject({ id })
    const changed = await operator.runJson<{ metadata: object; expiresAt: string | null }>(
      ...['api-keys', 'update', id, '--metadata', 'team=billing', '--expires-in', 'never'],
    )
    expect(changed).toMatchObject({ metadata: { team: 'billing' }, expiresAt: null })
    const shown = await operator.run('api-keys', 'show', id)
    expect(shown).toMatch(/^lastUsedAt +20\d\d-/m)
    expect(shown).not.toContain(apiKey)
    const next = await operator.runJson('api-keys', 'rotate', id)
    expect(await operator.statusFor(apiKey)).toBe(401)
    expect(await operator.statusFor(next.apiKey ?? '')).toBe(200)
    await operator.run('api-keys', 'revoke', next.id ?? '')
    expect(await operator.statusFor(next.apiKey ?? '')).toBe(401)
  })

  test('that do not exist, or are invalid, are reported', async () => {
    const id = randomUUID()
    expect(await failure('api-keys', 'rotate', id)).toEqual(notFound)
    expect(await failure('api-keys', 'show', id)).toEqual(notFound)
    expect(await failure('api-keys', 'update', id, '--name', 'x')).toEqual(notFound)
    expect(await failure('api-keys', 'revoke', id)).toEqual(notFound)
    expect(await failure('api-keys', 'create', '--name', '', '--subject', 's')).toEqual(invalid)
  })
})

describeInLong('limits', () => {
  test('are listed, overridden for one caller, lifted, and reset', async () => {
    const { token = '' } = await mint('dave')
    const override = ['limits', 'override', 'standard', 'dave', '--requests', '1']
    const { id = '' } = await operator.runJson(...override, '--expires-in', '1h')
    expect(await operator.statusFor(token)).toBe(200)
    expect(await operator.statusFor(token)).toBe(429)
    const listed = await operator.run('limits', 'list')
    expect(listed).toMatch(/^standard +100 +60 +subject +enforce +deny +exact +1 +-$/m)
    expect(listed).toMatch(new RegExp(`^${id} +standard +dave `, 'm'))
    await operator.run('limits', 'lift', id)
    expect(await operator.run('limits', 'list')).not.toContain(id)
    expect(await operator.run('limits', 'reset', 'standard', 'dave')).toContain('is reset')
    await expect.poll(() => operator.statusFor(token)).toBe(200)
  })

  testInLong('that do not exist are reported', async () => {
    expect(await failure('limits', 'lift', randomUUID())).toEqual(notFound)
    const unknown = await failure('limits', 'override', 'none', 'dave', '--requests', '1')
    expect(unknown[0]).toBe(1)
    expect((await failure('limits', 'reset', 'none', 'dave'))[0]).toBe(1)
  })
})

describeInLong('bans', () => {
  test('refuse a subject until they are deleted', async () => {
    const { token = '' } = await mint('mallory')
    const ban = ['bans', 'create', 'subject', 'mallory', '--for', '1h', '--reason', 'abuse']
    const { id = '' } = await operator.runJson(...ban)
    expect(await operator.statusFor(token)).toBe(403)
    expect(await operator.run('bans', 'list')).toMatch(
      new RegExp(`^${id} +subject +mallory +- +- +platform +abuse `, 'm'),
    )
    await operator.run('bans', 'delete', id)
    expect(await operator.statusFor(token)).toBe(200)
    expect(await failure('bans', 'delete', id)).toEqual(notFound)
  })

  test('of an invalid address are reported', async () => {
    expect(await failure('bans', 'create', 'address', 'nowhere', '--for', '1h')).toEqual(invalid)
  })
})

test('keys list prints no private member of a key', async () => {
  expect(await operator.run('keys', 'list')).toMatch(/^\S+ +ES256 +active /m)
  const { keys } = await operator.runJson<{ keys: object[] }>('keys', 'list')
  expect(keys.length).toBe(1)
  expect(keys.flatMap((key) => Object.keys(key))).not.toContain('d')
})

describe('a client without the role of an operator', () => {
  test('is refused with invalid_client for a wrong secret, which is not printed [S42]', async () => {
    const clientSecret = `pcs_${'w'.repeat(43)}`
    for (const clientId of [randomUUID(), await operator.clientId()]) {
      const client = { clientId, clientSecret }
      const { code, stdout, stderr } = await operator.attemptAs(client, 'keys', 'list')
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
      expect(stderr).toMatch(/^portcullis: invalid_client: /)
      expect(stderr).not.toContain(clientSecret)
    }
  })

  testInLong('is refused, whatever the command, and changes nothing', async () => {
    const reader = await operator.runJson<Credentials & Record<string, unknown>>(
      ...['clients', 'create', '--name', 'reader', '--role', 'reader'],
      ...['--grant', 'client_credentials'],
    )
    const id = randomUUID()
    const commands: readonly (readonly string[])[] = [
      ['token', 'mint', '--sub', 'erin', '--role', 'operator'],
      ['revoke', 'subject', 'erin'],
      ['revocations', 'list'],
      ['revocations', 'delete', id],
      ['clients', 'create', '--name', 'spy', '--grant', 'client_credentials'],
      ['clients', 'list'],
      ['clients', 'show', reader.clientId],
      ['clients', 'rotate-secret', reader.clientId],
      ['clients', 'disable', reader.clientId],
      ['api-keys', 'create', '--name', 'spy', '--subject', 'erin'],
      ['api-keys', 'list'],
      ['api-keys', 'show', id],
      ['api-keys', 'update', id, '--name', 'x'],
      ['api-keys', 'rotate', id],
      ['api-keys', 'revoke', id],
      ['limits', 'list'],
      ['limits', 'override', 'standard', 'erin', '--requests', '1'],
      ['limits', 'lift', id],
      ['limits', 'reset', 'standard', 'erin'],
      ['bans', 'create', 'subject', 'erin', '--for', '1h'],
      ['bans', 'list'],
      ['bans', 'delete', id],
      ['audit', 'query'],
      ['audit', 'tail'],
      ['keys', 'list'],
    ]
    for (const command of commands) {
      const { code, stdout, stderr } = await operator.attemptAs(reader, ...command, '--json')
      expect({ code, stdout }, command.join(' ')).toEqual({ code: 1, stdout: '' })
      expect(JSON.parse(stderr).error.code).toBe('insufficient_permission')
    }
    const { token = '' } = await mint('erin')
    expect(await operator.statusFor(token)).toBe(200)
    expect(await operator.run('clients', 'list')).not.toContain('spy')
  })
})

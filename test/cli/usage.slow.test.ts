import { describe, expect, test } from 'vitest'
import { everyOrAll } from '../harness/long.ts'
import { runHere } from './command-here.ts'
import { runCli } from './command-line.ts'

const SECRET = `pcs_${'A1b2C3d4'.repeat(6)}`
const API_KEY = `pk_${'A1b2C3d4'.repeat(6)}E`
const ID = '7f3c2b1a-9d8e-4f6a-8b5c-1d2e3f4a5b6c'
const CREDENTIALS = { PORTCULLIS_CLIENT_ID: ID, PORTCULLIS_CLIENT_SECRET: SECRET }

describe('a command line with a mistake exits with 2 before a request:', () => {
  test.each<[string[], string]>(
    everyOrAll(3, [
      [['launch'], "unknown command 'launch'; see portcullis --help"],
      [
        ['client', 'list'],
        "unknown command 'client' (Did you mean clients?); see portcullis --help",
      ],
      [['bans', 'make'], "unknown command 'make'; see portcullis bans --help"],
      [['revoke'], "missing required argument 'kind'; see portcullis revoke --help"],
      [
        ['revoke', 'everything', 'x'],
        'Allowed choices are token, session, subject, client, tenant',
      ],
      [['bans', 'create', 'subject', 'x'], "required option '--for <time>' not specified"],
      [
        ['bans', 'create', 'subject', 'x', '--for', 'long'],
        'It must look like 90s, 15m, 1h or 2d.',
      ],
      [['bans', 'create', 'subject', 'x', '--for', '1'], 'It must look like 90s, 15m, 1h or 2d.'],
      [['clients', 'rotate-secret', ID, '--grace', '60'], 'It must look like'],
      [['api-keys', 'create', '--expires-in', '90'], 'It must look like'],
      [
        ['api-keys', 'create', '--metadata', 'team'],
        "option '--metadata <name=value>' argument 'team' is invalid. It must look like team=billing.",
      ],
      [['api-keys', 'create', '--metadata', 'a=1', '--metadata', 'a=2'], '"a" occurs twice.'],
      [
        ['api-keys', 'show', 'nonsense'],
        "'nonsense' is invalid for argument 'id'. It must be the id of a key, which is a " +
          'UUID: `portcullis api-keys list` shows the ids.',
      ],
      [['usage', '--key', 'nonsense'], '`portcullis api-keys list` shows the ids.'],
      [['audit', 'query', '--key', 'nonsense'], '`portcullis api-keys list` shows the ids.'],
      [['api-keys', 'update', ID], 'nothing to change: use at least one option'],
      [['limits', 'override', 'a', 'b', '--expires-in', '7'], 'It must look like'],
      [['audit', 'erase', '--wait', '5'], 'It must look like'],
      [['audit', 'query', '--since', '15'], 'It must be a time'],
      [['usage'], 'use either --key, or --tenant, --subject or --reference'],
      [['usage', '--key', ID, '--tenant', 'acme'], 'use either --key, or --tenant'],
      [['bans', 'delete', '../clients'], 'It is not an id.'],
      [
        ['limits', 'override', 'a', 'b', '--requests', '-1'],
        'It must be a whole number. See portcullis limits override --help',
      ],
      [['audit', 'query', '--since', 'yesteryear'], 'It must be a time'],
      [
        ['clients', 'create', '--name', 'a', '--grant', 'password'],
        'It must be client_credentials',
      ],
      [['keys', 'list', 'too', 'many'], 'too many arguments'],
      [['keys', 'list', '--hurry'], "unknown option '--hurry'; see portcullis keys list --help"],
      [['keys', 'list', '--url', 'ftp://127.0.0.1'], 'must be an http or https URL'],
      [['keys', 'list', '--url', 'https://a.example/x'], 'no credentials, path, query or fragment'],
      [['keys', 'list', '--url', 'http://a.example'], 'must be https'],
      [
        ['clients', 'create', '--name', 'a', '--grant', 'refresh_token', '--jwks', '/none'],
        '--jwks',
      ],
    ]),
  )('%j', async (args, message) => {
    const { code, stdout, stderr } = await runCli(args, { env: CREDENTIALS })
    expect({ code, stdout }, stderr).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(/^portcullis: .+\n$/)
    expect(stderr).toContain(message)
  })

  test('a group without a command prints its help on stderr', async () => {
    const { code, stdout, stderr } = await runHere(['clients'])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain('Usage: portcullis clients')
  })

  test('a missing client id or secret is reported, if neither the environment nor a checkout has it', async () => {
    const none = await runHere(['keys', 'list'])
    expect(none).toMatchObject({ code: 2, stdout: '' })
    expect(none.stderr).toContain(
      'PORTCULLIS_CLIENT_ID is not set; `portcullis clients hash-secret` creates',
    )
    const half = await runHere(['keys', 'list'], { env: { PORTCULLIS_CLIENT_ID: ID } })
    expect(half).toMatchObject({ code: 2, stdout: '' })
    expect(half.stderr).toContain('PORTCULLIS_CLIENT_SECRET is not set')
  })

  test('the error is JSON with --json', async () => {
    const { code, stdout, stderr } = await runHere(['keys', 'list', '--json', '--hurry'])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(JSON.parse(stderr)).toEqual({
      error: { code: 'usage', detail: "unknown option '--hurry'", requestId: null },
    })
  })
})

describe('a credential in the wrong argument is not printed:', () => {
  const token = `${'eyJhbGciOiJFUzI1NiJ9'.repeat(3)}.e30.AAAA`
  test.each([
    [['revoke', token, 'x']],
    [['token', token]],
    [[token]],
    [['keys', 'list', `--client-secret=${SECRET}`]],
    [['keys', 'list', '--client-secret', SECRET]],
    [['api-keys', 'rotate', token]],
    [['api-keys', 'revoke', API_KEY]],
    [['usage', '--key', API_KEY]],
    [['clients', 'hash-secret', SECRET]],
  ])('%#', async (args) => {
    const { code, stdout, stderr } = await runHere(args, { env: CREDENTIALS })
    expect(code).toBe(2)
    expect(stdout + stderr).not.toContain(SECRET)
    expect(stdout + stderr).not.toContain(token)
    expect(stdout + stderr).not.toContain(API_KEY)
  })

  test('and control characters of an option are escaped', async () => {
    const { code, stderr } = await runHere(['keys', 'list', '--\u001b[31m\u202e'])
    expect(code).toBe(2)
    expect(stderr).toContain("unknown option '--\\u{1b}[31m\\u{202e}'")
  })
})

/** `portcullis idp doctor` with signed tokens and real providers. */
import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SignJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { presetOf } from '../../cli/idp/providers.ts'
import { createTokenVerifier } from '../../src/access/tokens/verifier.ts'
import { issuers } from '../../src/validators/issuer.ts'
import {
  createSigner,
  goodClaims,
  NOW_MS,
  NOW_SECONDS,
  type Signer,
} from '../access/tokens/signer.ts'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import { everyOrAll, testInLong } from '../harness/long.ts'
import { freePort, isInstalled } from '../harness/process.ts'
import { DOCUMENTED } from '../identity-providers/documented-tokens.ts'
import { runHere } from './command-here.ts'
import { CLI, type CliEnvironment, type Outcome, runCli } from './command-line.ts'

type Fields = Readonly<Record<string, unknown>>

let signer: Signer
let es384: Signer
let stranger: Signer
let provider: TestServer
let folder: string
/** The issuer of most tokens, a realm. */
let iss: string
/** Everything that the provider received. */
const received: string[] = []

beforeAll(async () => {
  vi.spyOn(Date, 'now').mockReturnValue(NOW_MS)
  signer = await createSigner('RS256', 'key-1')
  es384 = await createSigner('ES384', 'key-2')
  stranger = await createSigner('RS256', 'rotated')
  provider = await startHttpServer((request, response) => {
    received.push(`${request.url} ${JSON.stringify(request.headers)}`)
    const url = request.url ?? ''
    const [, realm] = /^(.*)\/\.well-known\/openid-configuration$/.exec(url) ?? []
    if (url === '/keys') {
      response.end(JSON.stringify({ keys: [signer.publicJwk, es384.publicJwk] }))
    } else if (realm !== undefined && !realm.startsWith('/none')) {
      const named = realm === '/moved' ? '/realms/internal' : realm
      // The metadata of this one names the issuer with a slash at its end.
      const issuer = `${provider.url}${named}${realm === '/slash' ? '/' : ''}`
      response.end(
        JSON.stringify({
          issuer,
          jwks_uri: `${provider.url}/keys`,
          token_endpoint: `${provider.url}/token`,
          id_token_signing_alg_values_supported: ['RS256'],
        }),
      )
    } else response.writeHead(404).end()
  })
  iss = `${provider.url}/plain`
  folder = await mkdtemp(join(tmpdir(), 'portcullis-idp-doctor-'))
})

afterAll(async () => {
  vi.restoreAllMocks()
  await provider.close()
  await rm(folder, { recursive: true, force: true })
})

interface TokenChanges {
  readonly claims?: Fields
  readonly header?: Fields
  readonly by?: Signer
}

function tokenOf({ claims, header, by = signer }: TokenChanges = {}): Promise<string> {
  const base = { iss, aud: 'orders', client_id: 'web', roles: ['reader'] }
  return by.token({ ...base, ...claims }, header)
}

/** Stops the clock of a process at the time of the tokens. */
const CLOCK = `--import=data:text/javascript,${encodeURIComponent(`Date.now = () => ${NOW_MS}`)}`

/** Runs `portcullis idp doctor`. */
const doctor = (args: readonly string[], environment: CliEnvironment = {}): Promise<Outcome> =>
  runHere(['idp', 'doctor', ...args], { cwd: folder, ...environment })

interface Check {
  readonly level: string
  readonly check: string
  readonly seen: string
  readonly expected?: string
}

interface Suggestion {
  readonly index?: number
  readonly fields: Fields
  readonly verdict?: string
  readonly notes: readonly string[]
}

interface Diagnosis {
  readonly code: number | null
  readonly first: string
  readonly ok: boolean
  readonly mistake: string | null
  readonly checks: readonly Check[]
  readonly suggestion: Suggestion | null
}

/** Runs the doctor twice, for text and JSON. The token is never printed or sent. */
async function examine(
  token: string,
  entries: unknown,
  args: readonly string[] = [],
  environment: CliEnvironment = {},
): Promise<Diagnosis> {
  const list = entries === undefined ? [] : ['--issuers', JSON.stringify(entries)]
  const command = ['-', ...list, ...args]
  const options = { ...environment, input: token }
  const [text, json] = await Promise.all([
    doctor(command, options),
    doctor([...command, '--json'], options),
  ])
  const { ok, mistake, checks, suggestion } = JSON.parse(json.stdout)
  expect(json).toMatchObject({ code: text.code, stderr: '' })
  const [first = ''] = text.stdout.split('\n')
  if (mistake !== null) expect(first).toBe(mistake)
  for (const part of token.split('.').filter(({ length }) => length > 20)) {
    expect(text.stdout + text.stderr + json.stdout).not.toContain(part)
    expect(received.join('\n')).not.toContain(part)
  }
  return { code: text.code, first, ok, mistake, checks, suggestion }
}

const errorsOf = ({ checks }: Diagnosis) =>
  checks.filter(({ level }) => level === 'error').map(({ check }) => check)

/** Returns the outcome of the gateway's verifier with the suggested fields. */
async function verifyWith(token: string, entry: Fields, { suggestion }: Diagnosis) {
  const fields = suggestion?.index === undefined ? {} : entry
  const verifier = createTokenVerifier({
    issuers: issuers.parse([{ ...fields, ...suggestion?.fields }]),
    now: () => NOW_MS,
  })
  return verifier.verify(token)
}

const entryOf = (changes: Fields = {}): Fields => ({ issuer: iss, audience: 'orders', ...changes })

test('a token that is accepted has no error, and every check is listed', async () => {
  const diagnosis = await examine(await tokenOf(), [entryOf()])
  expect(diagnosis).toMatchObject({
    code: 0,
    first: 'ISSUERS[0] accepts the token',
    ok: true,
    mistake: null,
    suggestion: null,
  })
  const names = diagnosis.checks.map(({ check }) => check)
  for (const name of 'iss,token use,discovery,key set,alg,key,signature,typ,aud,client,exp,iat,lifetime,roles,subject,tenant,session,scopes,token id'.split(
    ',',
  ))
    expect(names).toContain(name)
  expect(diagnosis.checks.find(({ check }) => check === 'alg')).toMatchObject({
    seen: '"RS256"',
    expected: expect.stringContaining('"RS256"'),
  })
})

test('the process prints the same as the command', async () => {
  const options = { cwd: folder, input: await tokenOf() }
  const args = ['-', '--issuers', JSON.stringify([entryOf({ audience: 'billing' })])]
  expect(
    await runCli(['idp', 'doctor', ...args], { ...options, env: { NODE_OPTIONS: CLOCK } }),
  ).toEqual(await doctor(args, options))
})

interface Case {
  readonly token?: () => TokenChanges
  readonly entry?: () => Fields
  readonly first: RegExp
  /** The fields that the suggestion sets; with them, the verifier accepts the token. */
  readonly set?: () => Fields
}

describe('the first line names the mistake:', () => {
  test.each<[string, Case]>(
    everyOrAll(4, [
      [
        'a wrong audience',
        {
          entry: () => ({ audience: 'billing' }),
          first: /^aud: the token is for "orders", and ISSUERS\[0\] expects "billing"$/,
          set: () => ({ audience: 'orders' }),
        },
      ],
      [
        'an issuer with a slash too many',
        {
          entry: () => ({ issuer: `${iss}/` }),
          first:
            /^iss: the issuer "\S+\/plain" has no slash at its end, and that of ISSUERS\[0\] has one$/,
          set: () => ({ issuer: iss }),
        },
      ],
      [
        'an issuer without its slash',
        {
          token: () => ({ claims: { iss: `${provider.url}/slash/` } }),
          entry: () => ({ issuer: `${provider.url}/slash` }),
          first:
            /^iss: the issuer "\S+\/slash\/" ends with a slash, and that of ISSUERS\[0\] does not$/,
          set: () => ({ issuer: `${provider.url}/slash/` }),
        },
      ],
      [
        'a missing typ',
        {
          token: () => ({ header: { typ: undefined } }),
          first: /^typ: the header of the token has no typ, and ISSUERS\[0\] expects at\+jwt$/,
          set: () => ({ typ: 'none', require: { client_id: '*' } }),
        },
      ],
      [
        'an algorithm that is not permitted',
        {
          token: () => ({ by: es384 }),
          first: /^alg: the token is signed with ES384, and ISSUERS\[0\] permits RS256, PS256, /,
          set: () => ({ algorithms: ['ES384'] }),
        },
      ],
      [
        'a clock that is ahead',
        {
          token: () => ({ claims: { iat: NOW_SECONDS + 40 } }),
          first: /^iat: iat of the token is 40 s in the future: the clock of the issuer is ahead/,
          set: () => ({ clockTolerance: 40 }),
        },
      ],
      [
        'a token that lives too long',
        {
          token: () => ({ claims: { exp: NOW_SECONDS + 100_000 } }),
          first: /^lifetime: the token is valid for 100000 s, and ISSUERS\[0\] permits 86400 s/,
          set: () => ({ maxTokenAge: 100_000 }),
        },
      ],
      [
        'roles in another claim',
        {
          token: () => ({ claims: { roles: undefined, app: { groups: ['staff'] } } }),
          first:
            /^roles: the token has no roles in "roles", and \["app","groups"\] looks like roles$/,
          set: () => ({ rolesClaim: ['app', 'groups'] }),
        },
      ],
      [
        'a map without the roles of the token',
        {
          entry: () => ({ rolesMap: { Reader: 'reader', Admin: 'admin' } }),
          first: /^roles: rolesMap of ISSUERS\[0\] maps none of the names in the token: "reader"$/,
          set: () => ({ rolesMap: { Reader: 'reader', Admin: 'admin', reader: 'reader' } }),
        },
      ],
      [
        'a client that is not listed',
        {
          entry: () => ({ clients: ['mobile'] }),
          first: /^client: the token is of the client "web", and ISSUERS\[0\] accepts "mobile"$/,
          set: () => ({ clients: ['mobile', 'web'] }),
        },
      ],
      [
        'a token of another client, by a rule',
        {
          token: () => ({ claims: { azp: 'web' } }),
          entry: () => ({ require: { azp: ['mobile', 'desktop'] } }),
          first:
            /^require azp: the token is of another client: the claim "azp" is "web", and ISSUERS\[0\] requires \["mobile","desktop"\]$/,
        },
      ],
      [
        'a wrong preset',
        {
          token: () => ({
            claims: {
              iss: `${provider.url}/realms/shop`,
              typ: 'Bearer',
              azp: 'web',
              roles: undefined,
              realm_access: { roles: ['reader'] },
            },
            header: { typ: 'JWT' },
          }),
          entry: () => ({ preset: 'okta', issuer: `${provider.url}/realms/shop` }),
          first: /^preset: ISSUERS\[0\] has the preset "okta", and the token is of Keycloak$/,
          set: () => ({ preset: 'keycloak' }),
        },
      ],
      [
        'an access token where an entry accepts ID tokens',
        {
          token: () => ({
            claims: {
              iss: 'https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_A',
              aud: undefined,
              client_id: 'orders',
              token_use: 'access',
              roles: undefined,
              'cognito:groups': ['reader'],
            },
            header: { typ: undefined },
          }),
          entry: () => ({
            preset: 'cognito-id',
            issuer: 'https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_A',
            jwksUri: `${provider.url}/keys`,
          }),
          first: /^preset: ISSUERS\[0\] has the preset "cognito-id"/,
          set: () => ({ preset: 'cognito' }),
        },
      ],
      [
        'a token without an audience',
        {
          token: () => ({ claims: { aud: undefined, client_id: 'orders' } }),
          first: /^aud: the token has no audience, and ISSUERS\[0\] expects "orders"$/,
          set: () => ({ audienceClaim: 'client_id' }),
        },
      ],
      [
        'another user pool',
        {
          token: () => cognito('eu-west-1', 'eu-west-1_B'),
          entry: cognitoEntry,
          first:
            /^iss: the token is of another user pool: its issuer is "https:\/\/cognito-idp\.eu-west-1\.amazonaws\.com\/eu-west-1_B"/,
          set: () => ({ issuer: 'https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_B' }),
        },
      ],
      [
        'another region',
        {
          token: () => cognito('us-east-1', 'us-east-1_A'),
          entry: cognitoEntry,
          first: /^iss: the token is of another region and user pool: its issuer is /,
          set: () => ({ issuer: 'https://cognito-idp.us-east-1.amazonaws.com/us-east-1_A' }),
        },
      ],
    ]),
  )('%s', async (_, { token, entry, first, set }) => {
    const text = await tokenOf(token?.())
    const fields = entryOf(entry?.())
    const diagnosis = await examine(text, [fields])
    expect(diagnosis.first).toMatch(first)
    expect(diagnosis).toMatchObject({ code: 1, ok: false })
    if (set === undefined) expect(diagnosis.suggestion).toBeNull()
    else {
      expect(diagnosis.suggestion).toMatchObject({ index: 0, verdict: 'accepted' })
      expect(diagnosis.suggestion?.fields).toEqual(set())
      expect(await verifyWith(text, fields, diagnosis)).toMatchObject({ subject: 'alice' })
    }
  })

  const cognito = (region: string, pool: string): TokenChanges => ({
    claims: {
      iss: `https://cognito-idp.${region}.amazonaws.com/${pool}`,
      aud: undefined,
      client_id: 'orders',
      token_use: 'access',
      'cognito:groups': ['reader'],
    },
    header: { typ: undefined },
  })
  function cognitoEntry(): Fields {
    const issuer = 'https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_A'
    return { preset: 'cognito', issuer, jwksUri: `${provider.url}/keys` }
  }

  test('an ID token in place of an access token, with no entry that accepts it', async () => {
    const token = await tokenOf({ claims: { nonce: 'n', at_hash: 'h' }, header: { typ: 'JWT' } })
    const diagnosis = await examine(token, [entryOf()])
    expect(diagnosis.first).toBe(
      'token use: this is an ID token (it has nonce, at_hash), and ISSUERS[0] accepts access tokens',
    )
    expect(diagnosis).toMatchObject({ code: 1, suggestion: null })
  })

  testInLong('an entry that accepts an ID token as an access token', async () => {
    const token = await tokenOf({ claims: { token_use: 'id' }, header: { typ: 'JWT' } })
    const diagnosis = await examine(token, [entryOf({ typ: 'JWT', require: { token_use: '*' } })])
    expect(diagnosis.first).toBe(
      'token use: this is an ID token, and ISSUERS[0] accepts it as an access token',
    )
    expect(diagnosis).toMatchObject({ code: 1, suggestion: null })
  })

  testInLong('a refresh token', async () => {
    const token = await tokenOf({ claims: { typ: 'Refresh' }, header: { typ: 'JWT' } })
    const diagnosis = await examine(token, [entryOf({ typ: 'JWT' })])
    expect(diagnosis.first).toBe(
      'token use: the token is of a kind that gives no access: typ is "Refresh"',
    )
    expect(errorsOf(diagnosis)).toEqual(['token use'])
    expect(diagnosis).toMatchObject({ code: 1, suggestion: null })
  })

  testInLong('a token that is signed with a shared secret', async () => {
    const token = await new SignJWT({ ...goodClaims, iss, aud: 'orders' })
      .setProtectedHeader({ alg: 'HS256', typ: 'at+jwt' })
      .sign(crypto.getRandomValues(new Uint8Array(32)))
    const diagnosis = await examine(token, [entryOf()])
    expect(diagnosis.first).toMatch(/^alg: the token is signed with "HS256", a shared secret, and /)
    expect(diagnosis).toMatchObject({ code: 1, suggestion: null })
  })

  testInLong('a key set that cannot be reached', async () => {
    const jwksUri = `http://127.0.0.1:${await freePort()}/keys`
    const diagnosis = await examine(await tokenOf(), [entryOf({ jwksUri })])
    expect(diagnosis.first).toBe(`key set: jwksUri ${jwksUri} cannot be reached (ECONNREFUSED)`)
    expect(diagnosis.code).toBe(1)
  })

  test('metadata of another issuer, without a suggestion to skip the comparison', async () => {
    const issuer = `${provider.url}/moved`
    const token = await tokenOf({ claims: { iss: issuer } })
    const diagnosis = await examine(token, [entryOf({ issuer })])
    expect(diagnosis.first).toBe(
      `discovery: the metadata names the issuer "${provider.url}/realms/internal", and expected is "${issuer}"`,
    )
    expect(diagnosis).toMatchObject({ code: 1, suggestion: null })
  })

  test('a token that has expired', async () => {
    const [iat, exp] = [NOW_SECONDS - 7_200, NOW_SECONDS - 3_600]
    const token = await tokenOf({ claims: { iat, exp } })
    const diagnosis = await examine(token, [entryOf()])
    expect(diagnosis.first).toMatch(/^exp: the token expired 3600 s ago, at 2027-01-15T07:00:00Z/)
    expect(diagnosis).toMatchObject({ code: 1, suggestion: null })
  })

  testInLong('a mistake of the entry before the age of the token', async () => {
    const [iat, exp] = [NOW_SECONDS - 7_200, NOW_SECONDS - 3_600]
    const token = await tokenOf({ claims: { iat, exp, aud: 'other' } })
    const diagnosis = await examine(token, [entryOf()])
    expect(errorsOf(diagnosis)).toEqual(['aud', 'exp'])
    expect(diagnosis.suggestion).toMatchObject({
      fields: { audience: 'other' },
      verdict: 'rejected: exp',
    })
  })

  testInLong('a key that is no longer in the key set', async () => {
    const diagnosis = await examine(await tokenOf({ by: stranger }), [entryOf()])
    expect(diagnosis.first).toBe('key: the key "rotated" of the token is not in the key set')
    expect(diagnosis).toMatchObject({ code: 1, suggestion: null })
  })

  test('a signature of another key', async () => {
    const token = await tokenOf({ by: stranger, header: { kid: signer.kid }, claims: { aud: 'x' } })
    const diagnosis = await examine(token, [entryOf()])
    expect(diagnosis.first).toBe('signature: the signature is not valid for the key of the issuer')
    expect(errorsOf(diagnosis)).toEqual(['signature', 'aud'])
    expect(diagnosis.suggestion).toBeNull()
  })

  test.each([
    ['an opaque token', 'f3b8a1d0c7e24b6f9a58', 'form: the token is opaque, not a JWT'],
    ['an encrypted token', 'aaaaaa.bbbbbb.cccccc.dddddd.eeeeee', 'form: the token is encrypted'],
    ['a token that is cut', 'eyJhbGciOiJSUzI1NiJ9.e30.A', 'form: the token is not a well-formed'],
  ])('%s', async (_, token, first) => {
    const diagnosis = await examine(token, [entryOf()])
    expect(diagnosis.first).toContain(first)
    expect(diagnosis).toMatchObject({ code: 1, suggestion: null })
  })

  testInLong('an entry that is not valid', async () => {
    const diagnosis = await examine(await tokenOf(), [{ issuer: iss }])
    expect(diagnosis.first).toBe('configuration: ISSUERS[0].audience: is missing')
    expect(diagnosis.code).toBe(1)
  })

  testInLong.each([
    ['realm', () => `${provider.url}/realms/a`, () => `${provider.url}/realms/b`],
    [
      'tenant',
      () => 'https://login.microsoftonline.com/9122040d-6c67-4c5b-b112-36a304b66dad/v2.0',
      () => 'https://login.microsoftonline.com/00000000-6c67-4c5b-b112-36a304b66dad/v2.0',
    ],
    ['tenant', () => 'https://a.eu.auth0.com/', () => 'https://b.eu.auth0.com/'],
  ])('another %s', async (what, seen, configured) => {
    const token = await tokenOf({ claims: { iss: seen() } })
    const diagnosis = await examine(token, [entryOf({ issuer: configured() })])
    expect(diagnosis.first).toBe(
      `iss: the token is of another ${what}: its issuer is "${seen()}", and ISSUERS[0] has "${configured()}"`,
    )
    expect(diagnosis.suggestion?.notes).toContainEqual(expect.stringMatching(/^issuer: only if/))
  })
})

describe('an issuer that only the token names', () => {
  test('is not called, and the entry is marked as not tried', async () => {
    const strange = `${provider.url}/realms/strange`
    const token = await tokenOf({ claims: { iss: strange, typ: 'Bearer' }, header: { typ: 'JWT' } })
    const before = received.length
    const other = entryOf({ issuer: 'https://idp.example' })
    const diagnosis = await examine(token, [other])
    expect(received.length).toBe(before)
    expect(diagnosis.first).toBe(`iss: the issuer "${strange}" is not in ISSUERS`)
    expect(diagnosis.checks).toContainEqual(
      expect.objectContaining({ level: 'not checked', check: 'key set' }),
    )
    expect(diagnosis.suggestion).toMatchObject({ verdict: 'not tried' })
  })

  test.each([
    ['--yes', () => ['--yes']],
    ['--issuer', (issuer: string) => ['--issuer', issuer]],
  ])('is called with %s, and the entry is tried', async (_, args) => {
    const issuer = `${provider.url}/realms/new`
    const claims = {
      iss: issuer,
      typ: 'Bearer',
      azp: 'web',
      roles: undefined,
      realm_access: { roles: ['reader'] },
    }
    const token = await tokenOf({ claims, header: { typ: 'JWT' } })
    const diagnosis = await examine(token, undefined, [...args(issuer), '--audience', 'orders'])
    const entry = { preset: 'keycloak', issuer, audience: 'orders' }
    expect(received.some((line) => line.startsWith('/realms/new/'))).toBe(true)
    expect(diagnosis.suggestion).toMatchObject({ fields: entry, verdict: 'accepted' })
    expect(await verifyWith(token, {}, diagnosis)).toMatchObject({ roles: ['reader'] })
  })

  describe.runIf(isInstalled('script'))('in a terminal', () => {
    /** Runs the command in a terminal, which `script` of util-linux opens, and presses keys. */
    async function answer(keys: string, token: string): Promise<string> {
      const command = [process.execPath, CLI, 'idp', 'doctor', token]
      const child = spawn('script', ['-qec', command.join(' '), '/dev/null'], {
        cwd: folder,
        env: { PATH: process.env.PATH, NODE_OPTIONS: CLOCK },
      })
      let output = ''
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        output += text
        if (text.includes('[y/N]')) child.stdin.write(`${keys}\n`)
      })
      await new Promise((resolve) => child.once('close', resolve))
      return output
    }

    test.each([
      ['y', 'The verifier of the gateway accepts the token'],
      ['n', 'It was not tried'],
      ['', 'It was not tried'],
    ])('is called only after a yes: %j', async (keys, outcome) => {
      const name = `asked-${keys}`
      const issuer = `${provider.url}/${name}`
      const output = await answer(keys, await tokenOf({ claims: { iss: issuer } }))
      expect(output).toContain(`The token names the issuer "${issuer}", which is not configured.`)
      expect(output).toContain(outcome)
      expect(received.some((line) => line.startsWith(`/${name}/`))).toBe(keys === 'y')
    })
  })

  test('is not called over http, whatever the options', async () => {
    const token = await tokenOf({ claims: { iss: 'http://192.0.2.1/realms/a' } })
    const diagnosis = await examine(token, [], ['--yes'])
    expect(errorsOf(diagnosis)).toEqual(['iss', 'configuration'])
  })
})

test('a suggestion that would accept ID tokens says so', async () => {
  const token = await tokenOf({ claims: { client_id: undefined }, header: { typ: 'JWT' } })
  const diagnosis = await examine(token, [entryOf()])
  expect(diagnosis.suggestion).toMatchObject({ fields: { typ: 'JWT' }, verdict: 'accepted' })
  expect(diagnosis.suggestion?.notes[0]).toMatch(/^This entry also accepts an ID token/)
})

test('values of claims are escaped and bounded', async () => {
  const claims = { aud: `\u001b[31m${'x'.repeat(3_000)}`, sub: '\u202ealice' }
  const { stdout } = await doctor(['-', '--issuers', JSON.stringify([entryOf()])], {
    input: await tokenOf({ claims }),
  })
  for (const unsafe of ['\u001b', '\u202e']) expect(stdout).not.toContain(unsafe)
  expect(stdout).not.toContain('x'.repeat(250))
  expect(stdout).toMatch(/^aud: the token is for "\\u001b\[31m/)
})

testInLong('a long issuer is bounded', async () => {
  const issuer = `${provider.url}/none/${'x'.repeat(1_500)}`
  const { stdout } = await doctor([issuer])
  expect(stdout).toMatch(/^discovery: metadata http/)
  for (const line of stdout.split('\n')) expect(line.length).toBeLessThan(700)
})

test('a secret of the configuration is not printed', async () => {
  const k = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64url')
  const legacy = {
    issuer: iss,
    audience: 'billing',
    algorithms: ['HS256'],
    jwks: { keys: [{ kty: 'oct', k, kid: 'key-1' }] },
  }
  const options = { input: await tokenOf() }
  const args = ['-', '--issuers', JSON.stringify([legacy])]
  for (const extra of [[], ['--json']]) {
    const { code, stdout, stderr } = await doctor([...args, ...extra], options)
    expect(code).toBe(1)
    expect(stdout + stderr).not.toContain(k)
  }
})

test('the provider of a documented token is recognized, by its issuer or by a claim', () => {
  const recognized = Object.values(DOCUMENTED).map(({ claims }) =>
    presetOf(String(claims.iss), claims),
  )
  // Better Auth has neither a host nor a claim of its own. ID tokens of Cognito are not for APIs.
  const expected = Object.keys(DOCUMENTED).map((preset) => {
    if (preset === 'better-auth') return undefined
    return preset === 'cognito-id' ? 'cognito' : preset
  })
  expect(recognized).toEqual(expected)
})

describe('the configuration is read from', () => {
  const found = 'ISSUERS[0] accepts the token'

  test('the environment', async () => {
    const env = { ISSUERS: JSON.stringify([entryOf()]) }
    expect((await examine(await tokenOf(), undefined, [], { env })).first).toBe(found)
  })

  test('a file', async () => {
    const file = join(folder, 'issuers.json')
    await writeFile(file, JSON.stringify([entryOf()]))
    expect((await examine(await tokenOf(), undefined, ['--issuers', file])).first).toBe(found)
  })

  testInLong('a file of values', async () => {
    const file = join(folder, 'staging.env')
    await writeFile(file, `ISSUERS='${JSON.stringify([entryOf()])}'\n`)
    expect((await examine(await tokenOf(), undefined, ['--values', file])).first).toBe(found)
  })

  testInLong.each([
    ['.dev.vars', (text: string) => `ISSUERS='${text}'\n`],
    [
      'wrangler.toml',
      (text: string) => `name = "gateway"\nmain = "gateway.ts"\n[vars]\nISSUERS = '${text}'\n`,
    ],
  ])('%s of the project', async (name, contentOf) => {
    const cwd = await mkdtemp(join(folder, 'project-'))
    await writeFile(join(cwd, 'package.json'), '{"dependencies":{"portcullis":"*"}}')
    await writeFile(join(cwd, 'wrangler.toml'), 'name = "gateway"\nmain = "gateway.ts"\n')
    await writeFile(join(cwd, name), contentOf(JSON.stringify([entryOf()])))
    expect((await examine(await tokenOf(), undefined, [], { cwd })).first).toBe(found)
  })
})

describe('an issuer', () => {
  async function examineIssuer(url: string, args: readonly string[] = []) {
    const { code, stdout } = await doctor([url, ...args, '--json'])
    const text = await doctor([url, ...args])
    return { code, first: text.stdout.split('\n')[0], ...JSON.parse(stdout) } as Diagnosis
  }

  test('that can be used has an entry', async () => {
    const issuer = `${provider.url}/realms/shop`
    const diagnosis = await examineIssuer(issuer, ['--audience', 'orders'])
    expect(diagnosis).toMatchObject({
      code: 0,
      first: `${issuer} can be used`,
      suggestion: { fields: { preset: 'keycloak', issuer, audience: 'orders' } },
    })
    expect(diagnosis.checks).toContainEqual(
      expect.objectContaining({ check: 'key set', expected: '["ES384","RS256"]' }),
    )
    expect(diagnosis.checks).toContainEqual(
      expect.objectContaining({ check: 'token endpoint', seen: `"${provider.url}/token"` }),
    )
  })

  testInLong.each([
    [
      'without the slash of its metadata',
      '/slash',
      /^discovery: .* differ in the slash at the end$/,
    ],
    [
      'with the URL of its metadata',
      '/plain/.well-known/openid-configuration',
      /^issuer: this is the URL of the metadata, not the issuer$/,
    ],
    ['without metadata', '/none', /^discovery: metadata http.* responds with status 404/],
    ['with metadata of another issuer', '/moved', /^discovery: the metadata names the issuer /],
  ])('%s is a mistake', async (_, path, first) => {
    const diagnosis = await examineIssuer(`${provider.url}${path}`)
    expect(diagnosis.first).toMatch(first)
    expect(diagnosis.code).toBe(1)
  })

  testInLong('with a missing slash gets the entry of its metadata', async () => {
    const { suggestion } = await examineIssuer(`${provider.url}/slash`)
    expect(suggestion).toMatchObject({ fields: { issuer: `${provider.url}/slash/` } })
  })

  test('without https is not called', async () => {
    const diagnosis = await examineIssuer('http://192.0.2.1/')
    expect(diagnosis.first).toMatch(/^issuer: .*must be an https URL/)
  })
})

test.each([
  [['--preset', 'oktaa'], '--preset: must be one of auth0, '],
  [['--issuers', '/none'], '--issuers is neither JSON nor a file'],
  [['--issuers', '[nonsense'], '--issuers is neither a file nor JSON'],
])('%j is wrong usage', async (args, message) => {
  const { code, stdout, stderr } = await doctor(['-', ...args], { input: 'x.y.z' })
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toContain(message)
})

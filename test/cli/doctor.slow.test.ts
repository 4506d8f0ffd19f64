import { randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { Finding } from '../../cli/doctor/finding.ts'
import { TESTED_DATE } from '../../cli/doctor/project.ts'
import { startFaultProxy } from '../../dev/fault-proxy/proxy.ts'
import { startUpstashRest } from '../../dev/upstash-rest/server.ts'
import { generateSigningJwk } from '../features/operators/signing-jwk.ts'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import { createKey } from '../harness/issuer.ts'
import { everyOrAll, testInLong } from '../harness/long.ts'
import { freePort, ROOT } from '../harness/process.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'
import { runHere } from './command-here.ts'
import { type CliEnvironment, runCli } from './command-line.ts'
import { closeStubGateways, startStubGateway } from './stub-gateway.ts'

const canary = () => randomBytes(32).toString('base64url')
const SIGNING_JWK = generateSigningJwk('key-1')
const SYMMETRIC_KEY = canary()
const CANARIES = {
  OPENFGA_TOKEN: canary(),
  AUDIT_ADDRESS_KEY: canary(),
  OTLP_HEADERS: `authorization=${canary()}`,
}
const CLIENT_SECRET = `pcs_${canary()}`

let redis: TestRedis
let providers: TestServer
let origin: TestServer
let folder: string
/** A set-up without a mistake. */
let healthy: Record<string, string>

beforeAll(async () => {
  redis = await startTestRedis()
  const { publicJwk } = await createKey('idp')
  const answers: Record<string, readonly [number, string]> = {
    '/keys': [200, JSON.stringify({ keys: [publicJwk] })],
    '/page': [200, '<html>keys</html>'],
    '/none': [200, '{"keys":[]}'],
    '/keys-and-more': [200, JSON.stringify({ keys: [publicJwk, { kty: 'oct', k: 'AAAA' }] })],
    '/other/.well-known/openid-configuration': [200, '{"issuer":"https://somebody.example"}'],
  }
  providers = await startHttpServer((request, response) => {
    const [status, body] = answers[request.url?.split('?')[0] ?? ''] ?? [404, 'none']
    response.writeHead(status).end(body)
  })
  origin = await startHttpServer((_, response) => response.end('[]'))
  folder = await mkdtemp(join(tmpdir(), 'portcullis-doctor-'))
  healthy = {
    UPSTASH_REDIS_REST_URL: redis.url,
    UPSTASH_REDIS_REST_TOKEN: redis.token,
    REDIS_TIMEOUT_MS: '5000',
    PUBLIC_URL: 'https://api.test',
    ORIGIN_URL: origin.url,
    SIGNING_KEYS: JSON.stringify({ keys: [SIGNING_JWK] }),
    ISSUERS: issuersOf({ jwksUri: `${providers.url}/keys?token=${canary()}` }),
    OPENFGA_URL: 'https://openfga.test',
    OPENFGA_STORES: '{"acme":{"store":"01ARZ3NDEKTSV4RRFFQ69G5FAV"}}',
    ...CANARIES,
  }
})

afterAll(async () => {
  await closeStubGateways()
  await redis.close()
  await providers.close()
  await origin.close()
  await rm(folder, { recursive: true, force: true })
})

/** One issuer with a remote key set, and one with a symmetric key. */
const issuersOf = (remote: object, issuer = 'https://idp.test') =>
  JSON.stringify([
    { issuer, audience: 'api', ...remote },
    {
      issuer: 'https://legacy.test',
      audience: 'api',
      algorithms: ['HS256'],
      jwks: { keys: [{ kty: 'oct', k: SYMMETRIC_KEY }] },
    },
  ])

interface Diagnosis {
  readonly code: number | null
  readonly ok: boolean
  readonly findings: readonly Finding[]
}

type Changes = Readonly<Record<string, string | undefined>>

/** Runs the doctor with the healthy set-up and changes. Checks that no secret is in its output. */
async function examine(
  changes: Changes = {},
  args: readonly string[] = [],
  { run = runHere, ...environment }: CliEnvironment & { readonly run?: typeof runCli } = {},
): Promise<Diagnosis> {
  const values = { ...healthy, ...changes }
  const file = join(folder, `${crypto.randomUUID()}.env`)
  const lines = Object.entries(values).map(([name, value]) =>
    value === undefined ? '' : `${name}='${value}'\n`,
  )
  await writeFile(file, lines.join(''))
  const options = { cwd: folder, ...environment }
  const command = ['doctor', '--values', file, ...args]
  const { code, stdout, stderr } = await run([...command, '--json'], options)
  const secrets = [
    ...[redis.token, values.UPSTASH_REDIS_REST_TOKEN, SYMMETRIC_KEY, CLIENT_SECRET],
    ...[...Object.values(CANARIES), SIGNING_JWK.d, 'token='],
  ]
  for (const secret of secrets) if (secret) expect(stdout + stderr).not.toContain(secret)
  expect(stderr).toBe('')
  return { code, ...JSON.parse(stdout) }
}

const checksOf = ({ findings }: Diagnosis, level: Finding['level']) =>
  findings.filter((finding) => finding.level === level).map(({ check }) => check)

test('a healthy set-up has no errors, and says what cannot be checked from here', async () => {
  const diagnosis = await examine()
  expect(diagnosis).toMatchObject({ code: 0, ok: true })
  expect(checksOf(diagnosis, 'error')).toEqual([])
  expect(checksOf(diagnosis, 'ok')).toEqual(
    expect.arrayContaining([
      'environment',
      'signing keys',
      'redis',
      'redis scripts',
      'redis latency',
      'redis clock',
      'key set of https://idp.test',
      'key set of https://legacy.test',
      'origin',
    ]),
  )
  expect(checksOf(diagnosis, 'not checked')).toEqual(
    expect.arrayContaining(['wrangler.toml', 'queue and database']),
  )
  expect(await redis.direct.keys('pc:doctor:*')).not.toHaveLength(0)
  for (const key of await redis.direct.keys('pc:doctor:*'))
    expect(await redis.direct.pttl(key)).toBeLessThanOrEqual(10_000)
})

test('the text has a line for each finding, and a summary on stderr', async () => {
  const { code, stdout, stderr } = await runCli(['doctor'], { cwd: folder, env: healthy })
  expect(code).toBe(0)
  const [heading, first] = stdout.split('\n')
  expect(heading).toMatch(/^LEVEL +CHECK +FINDING$/)
  expect(first).toMatch(/^(warning|ok) /)
  expect(stderr).toMatch(/^0 errors, \d warnings?\.\n$/)
})

describe('a broken set-up is the first finding, with its remedy:', () => {
  /** Expects the first finding, and exit code 1. */
  async function expectFirst(diagnosis: Diagnosis, check: string, seen: RegExp | string) {
    expect(diagnosis).toMatchObject({ code: 1, ok: false })
    const [first] = diagnosis.findings
    expect(first).toMatchObject({ level: 'error', check })
    expect(first?.seen).toMatch(seen)
    expect(first?.remedy).toMatch(/^[A-Z].+\.$/)
  }

  test.each<[string, Changes, string]>(
    everyOrAll(3, [
      ['no database', { UPSTASH_REDIS_REST_URL: undefined }, 'UPSTASH_REDIS_REST_URL: is missing'],
      ['no origin', { ORIGIN_URL: undefined }, 'ORIGIN_URL: is missing'],
      ['a URL with a path', { PUBLIC_URL: 'https://api.test/v1' }, 'PUBLIC_URL: must have no path'],
      [
        'an issuer without audience',
        { ISSUERS: '[{"issuer":"https://a.test"}]' },
        'ISSUERS[0].audi',
      ],
      [
        'keys that are not JSON',
        { SIGNING_KEYS: `{${canary()}` },
        'SIGNING_KEYS: must be valid JSON',
      ],
    ]),
  )('%s', async (_, changes, seen) => {
    const diagnosis = await examine(changes)
    await expectFirst(diagnosis, 'environment', seen)
  })

  test('a wrong token', async () => {
    const diagnosis = await examine({ UPSTASH_REDIS_REST_TOKEN: canary() })
    await expectFirst(diagnosis, 'redis', /^http:\S+ refuses the token$/)
  })

  testInLong('another server instead of Redis', async () => {
    const diagnosis = await examine({ UPSTASH_REDIS_REST_URL: origin.url })
    await expectFirst(diagnosis, 'redis', /does not respond like the REST API/)
  })

  test('a database that is not running', async () => {
    const url = `http://127.0.0.1:${await freePort()}`
    const diagnosis = await examine({ UPSTASH_REDIS_REST_URL: url })
    await expectFirst(diagnosis, 'redis', /cannot be reached \(ECONNREFUSED\)/)
  })

  async function proxied() {
    const proxy = await startFaultProxy({
      target: { host: '127.0.0.1', port: Number(new URL(redis.url).port) },
    })
    onTestFinished(() => proxy.close())
    return proxy
  }

  testInLong('a database that hangs', async () => {
    const proxy = await proxied()
    await proxy.set({ kind: 'hang' })
    const diagnosis = await examine({ UPSTASH_REDIS_REST_URL: proxy.url })
    await expectFirst(diagnosis, 'redis', /does not respond within 5000 ms/)
  })

  testInLong('a proxy that answers with garbage', async () => {
    const proxy = await proxied()
    await proxy.set({ kind: 'garbage' })
    const diagnosis = await examine({ UPSTASH_REDIS_REST_URL: proxy.url })
    await expectFirst(diagnosis, 'redis', /cannot be reached/)
  })

  testInLong('a database that is slower than REDIS_TIMEOUT_MS', async () => {
    const proxy = await proxied()
    await proxy.set({ kind: 'latency', ms: 60 })
    const changes = { UPSTASH_REDIS_REST_URL: proxy.url, REDIS_TIMEOUT_MS: '50' }
    const diagnosis = await examine(changes)
    await expectFirst(
      diagnosis,
      'redis latency',
      /median \d+ ms, 95th percentile \d+ ms, .* is 50 ms/,
    )
  })

  test.runIf(process.platform !== 'win32')('a clock that is a minute ahead', async () => {
    const shift = 'const now = Date.now; Date.now = () => now() + 60_000'
    const hook = `--import=data:text/javascript,${encodeURIComponent(shift)}`
    const diagnosis = await examine({}, [], { run: runCli, env: { NODE_OPTIONS: hook } })
    await expectFirst(diagnosis, 'redis clock', /^(59|60|61)\.\d s behind this machine/)
  })

  test('a token that may only read', async (context) => {
    if (redis.kind !== 'server') context.skip('the embedded Redis has no permissions')
    const password = canary()
    await redis.direct.call(
      'ACL',
      'SETUSER',
      'reader',
      'on',
      `>${password}`,
      '~*',
      '+@read',
      '+ping',
      '+info',
    )
    const url = redis.redisUrl.replace('redis://', `redis://reader:${password}@`)
    const token = canary()
    const rest = await startUpstashRest({ port: 0, token, redis: { url } })
    onTestFinished(() => rest.close())
    const changes = { UPSTASH_REDIS_REST_URL: rest.url, UPSTASH_REDIS_REST_TOKEN: token }
    await expectFirst(await examine(changes), 'redis scripts', /may not run scripts or write/)
  })

  testInLong('a database that evicts keys', async (context) => {
    if (redis.kind !== 'server') context.skip('the embedded Redis has no memory limit')
    const direct = new Redis(redis.redisUrl)
    onTestFinished(async () => {
      await direct.config('SET', 'maxmemory', '0')
      await direct.config('SET', 'maxmemory-policy', 'noeviction')
      direct.disconnect()
    })
    await direct.config('SET', 'maxmemory', '100mb')
    await direct.config('SET', 'maxmemory-policy', 'allkeys-lru')
    await expectFirst(await examine(), 'redis memory', /allkeys-lru/)
  })

  testInLong('a database whose memory is full', async (context) => {
    if (redis.kind !== 'server') context.skip('the embedded Redis has no memory limit')
    const direct = new Redis(redis.redisUrl)
    onTestFinished(async () => {
      await direct.config('SET', 'maxmemory', '0')
      direct.disconnect()
    })
    await direct.config('SET', 'maxmemory', '1')
    await expectFirst(await examine(), 'redis scripts', /is full \(OOM\), so requests/)
  })

  testInLong.each([
    ['that is absent', '/absent', /^jwksUri http:\S+\/absent responds with status 404$/],
    ['that is a page', '/page', /text that is not JSON$/],
    ['without keys', '/none', /has no key that can be used for RS256/],
  ])('a key set %s', async (_, path, seen) => {
    const jwksUri = `${providers.url}${path}?token=${canary()}`
    const diagnosis = await examine({ ISSUERS: issuersOf({ jwksUri }) })
    await expectFirst(diagnosis, 'key set of https://idp.test', seen)
  })

  testInLong('an issuer whose keys are for another algorithm', async () => {
    const remote = { jwksUri: `${providers.url}/keys`, algorithms: ['RS256'] }
    const diagnosis = await examine({ ISSUERS: issuersOf(remote) })
    await expectFirst(
      diagnosis,
      'key set of https://idp.test',
      /no key that can be used for RS256$/,
    )
    expect(diagnosis.findings[0]?.remedy).toContain('`algorithms`')
  })

  testInLong('an issuer with a wrong name', async () => {
    const issuer = `${providers.url}/other`
    const diagnosis = await examine({ ISSUERS: issuersOf({}, issuer) })
    await expectFirst(diagnosis, `key set of ${issuer}`, /somebody\.example/)
  })

  test('an origin that is not running', async () => {
    const url = `http://127.0.0.1:${await freePort()}`
    await expectFirst(await examine({ ORIGIN_URL: url }), 'origin', /cannot be reached/)
  })

  const project = {
    'package.json': '{"dependencies":{"portcullis":"*"}}',
    'wrangler.toml': `name = "gateway"
main = "gateway.ts"
compatibility_date = "${TESTED_DATE}"
[[queues.producers]]
binding = "AUDIT_QUEUE"
queue = "gateway-audit"
[[d1_databases]]
binding = "AUDIT_DB"
database_name = "gateway-audit"
database_id = "7f3c2b1a-9d8e-4f6a-8b5c-1d2e3f4a5b6c"
`,
    'audit.toml': `name = "gateway-audit"
main = "audit.ts"
compatibility_date = "${TESTED_DATE}"
[[queues.consumers]]
queue = "gateway-audit"
[[d1_databases]]
binding = "AUDIT_DB"
database_name = "gateway-audit"
database_id = "7f3c2b1a-9d8e-4f6a-8b5c-1d2e3f4a5b6c"
`,
  }

  /** Examines a project after a replacement in one of its files. */
  async function examineProject(
    file: keyof typeof project = 'audit.toml',
    from = '',
    to = '',
  ): Promise<Diagnosis> {
    const cwd = await mkdtemp(join(folder, 'project-'))
    for (const [name, text] of Object.entries(project))
      await writeFile(join(cwd, name), name === file ? text.replace(from, to) : text)
    return examine({}, [], { cwd })
  }

  test('except in a project without mistakes', async () => {
    const diagnosis = await examineProject()
    expect(diagnosis).toMatchObject({ code: 0 })
    expect(checksOf(diagnosis, 'ok')).toContain('wrangler.toml')
    expect(checksOf(diagnosis, 'warning')).toEqual([])
  })

  testInLong.each([
    [
      'wrangler.toml',
      'binding = "AUDIT_QUEUE"',
      'binding = "QUEUE"',
      'as QUEUE, not as AUDIT_QUEUE',
    ],
    ['wrangler.toml', 'binding = "AUDIT_DB"', 'binding = "DB"', 'as DB, not as AUDIT_DB'],
    ['wrangler.toml', /compatibility_date.*\n/, '', 'has no valid compatibility_date'],
    ['wrangler.toml', TESTED_DATE, '2199-01-01', '2199-01-01 is in the future'],
    ['wrangler.toml', 'name = "gateway"', 'name = gateway', 'wrangler.toml:1:8: '],
  ] as const)('in %s, %s', async (file, from, to, seen) => {
    const diagnosis = await examineProject(file, from as string, to)
    await expectFirst(diagnosis, file, seen)
  })

  testInLong.each([
    [
      'audit.toml',
      'queue = "gateway-audit"',
      'queue = "other"',
      'no Worker of this project consumes',
    ],
    [
      'wrangler.toml',
      '7f3c2b1a-9d8e-4f6a-8b5c-1d2e3f4a5b6c',
      'later',
      'AUDIT_DB has no database_id',
    ],
    ['wrangler.toml', 'main =', 'vars.SIGNING_KEYS = "x"\nmain =', 'SIGNING_KEYS is a secret'],
    ['audit.toml', TESTED_DATE, '2024-01-01', 'compatibility_date 2024-01-01 is not tested'],
  ] as const)('or a warning: in %s, %s', async (file, from, to, seen) => {
    const diagnosis = await examineProject(file, from, to)
    expect(diagnosis.code).toBe(0)
    expect(diagnosis.findings[0]).toMatchObject({ level: 'warning' })
    expect(diagnosis.findings[0]?.seen).toContain(seen)
  })

  const GATEWAY = { PORTCULLIS_CLIENT_ID: 'operator', PORTCULLIS_CLIENT_SECRET: CLIENT_SECRET }
  const READY = { status: 'ready', checks: { redis: 'ok', queue: 'ok' }, breakers: {} }
  const stubs = {
    ready: { '/-/readyz': { body: READY } },
    unready: {
      '/-/readyz': {
        status: 503,
        body: { status: 'unready', checks: { redis: 'ok', queue: 'failed' }, breakers: {} },
      },
    },
    misconfigured: { '/-/readyz': { status: 500, body: { code: 'misconfigured' } } },
    page: { '/-/readyz': { body: '<html>' } },
    denied: {
      '/-/readyz': { body: READY },
      '/oauth/token': { status: 401, body: { error: 'invalid_client' } },
    },
    trail: {
      '/-/readyz': { body: READY },
      '/-/admin/keys': { body: { keys: [] } },
      '/-/admin/audit': { status: 503, body: { code: 'dependency_unavailable', detail: 'D1' } },
    },
  }

  testInLong.each([
    ['misconfigured', 'gateway', /^is deployed, but misconfigured$/],
    ['page', 'gateway', /not in the form of a gateway/],
    ['unready', 'readiness of queue', /reports that it fails/],
    ['denied', "operators' API", /^invalid_client: /],
    ['trail', 'queue and database', /^dependency_unavailable: /],
  ] as const)('a gateway that is %s', async (name, check, seen) => {
    const { url } = await startStubGateway(stubs[name])
    const diagnosis = await examine({}, ['--url', url], { env: GATEWAY })
    await expectFirst(diagnosis, check, seen)
  })

  test('a gateway that is not running', async () => {
    const diagnosis = await examine({}, ['--url', `http://127.0.0.1:${await freePort()}`])
    await expectFirst(diagnosis, 'gateway', /cannot be reached \(ECONNREFUSED\)/)
  })

  test('without the credentials of an operator, the API of a gateway is not checked', async () => {
    const { url } = await startStubGateway(stubs.ready)
    const diagnosis = await examine({}, ['--url', url])
    expect(diagnosis.code).toBe(0)
    expect(checksOf(diagnosis, 'not checked')).toContain("operators' API and database")
  })
})

test('keys that cannot be used are a warning, by their position', async () => {
  const jwksUri = `${providers.url}/keys-and-more`
  const diagnosis = await examine({ ISSUERS: issuersOf({ jwksUri }) })
  expect(diagnosis.code).toBe(0)
  expect(diagnosis.findings[0]).toMatchObject({
    level: 'warning',
    check: 'key set of https://idp.test',
    seen: expect.stringContaining('1 ('),
  })
})

test('a server that refuses the flag of Upstash is fine, and costs one call', async () => {
  const token = canary()
  const options = { port: 0, token, redis: { url: redis.redisUrl }, keepsScriptFlags: true }
  const rest = await startUpstashRest(options)
  onTestFinished(() => rest.close())
  const changes = { UPSTASH_REDIS_REST_URL: rest.url, UPSTASH_REDIS_REST_TOKEN: token }
  const diagnosis = await examine(changes)
  expect(diagnosis.findings).toContainEqual(
    expect.objectContaining({ level: 'ok', seen: expect.stringContaining('flag is refused') }),
  )
})

test('an unreadable file of the environment is wrong usage', async () => {
  const cwd = await mkdtemp(join(folder, 'unreadable-'))
  await mkdir(join(cwd, '.portcullis/production.env'), { recursive: true })
  const { code, stdout, stderr } = await runHere(['doctor'], { cwd })
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toMatch(/production\.env cannot be read/)
})

test.each([
  [['--url', 'https://a.example/x'], '--url must be an http or https URL without a path'],
  [['--url', 'ftp://a.example'], '--url must be an http or https URL'],
  [['--env', 'Staging!'], '--env must be'],
])('%j is wrong usage', async (args, message) => {
  const cwd = await mkdtemp(join(folder, 'usage-'))
  await writeFile(join(cwd, 'package.json'), '{"name":"portcullis"}')
  await writeFile(join(cwd, 'wrangler.toml'), 'name = "g"\nmain = "g.ts"')
  const { code, stdout, stderr } = await runHere(['doctor', ...args], { cwd })
  expect({ code, stdout }, stderr).toEqual({ code: 2, stdout: '' })
  expect(stderr).toContain(message)
})

test('a file that does not exist is refused', async () => {
  const { code, stdout, stderr } = await runHere(['doctor', '--values', '/none'], { cwd: folder })
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toBe('portcullis: --values: /none does not exist\n')
})

test('the date that is recommended is that of the checkout', async () => {
  const text = await readFile(join(ROOT, 'wrangler.toml'), 'utf8')
  expect(text).toContain(`compatibility_date = "${TESTED_DATE}"`)
})

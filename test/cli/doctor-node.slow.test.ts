/** `portcullis doctor --node`: the environment of `portcullis serve`, and what a gateway on Node depends on. */
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Finding } from '../../cli/doctor/finding.ts'
import { createRedactor } from '../../cli/doctor/redact.ts'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import { createKey, ISSUER } from '../harness/issuer.ts'
import { freePort } from '../harness/process.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'
import { makeNodeProject } from '../runtimes/node/project.ts'
import { runCli } from './command-line.ts'

let redis: TestRedis
let origin: TestServer
let folder: string
let healthy: Record<string, string>

beforeAll(async () => {
  redis = await startTestRedis()
  origin = await startHttpServer((_, response) => response.end('[]'))
  folder = await mkdtemp(join(tmpdir(), 'portcullis-doctor-'))
  const { publicJwk } = await createKey('idp')
  healthy = {
    REDIS_URL: redis.redisUrl,
    REDIS_TIMEOUT_MS: '5000',
    PUBLIC_URL: 'https://api.test',
    ORIGIN_URL: origin.url,
    ISSUERS: JSON.stringify([{ issuer: ISSUER, audience: 'api', jwks: { keys: [publicJwk] } }]),
    AUDIT_DATABASE: `sqlite:${join(folder, 'audit.db')}`,
    TRUSTED_PROXIES: '10.0.0.0/8',
  }
})
afterAll(async () => {
  await redis?.close()
  await origin?.close()
  await rm(folder, { recursive: true, force: true })
})

interface Diagnosis {
  readonly code: number | null
  readonly findings: readonly Finding[]
  readonly text: string
}

/** Runs the command. A change to an empty text removes the variable. */
async function examine(changes: Readonly<Record<string, string>> = {}, ...args: string[]) {
  const env = { ...healthy, ...changes }
  const command = ['doctor', '--node', ...args, '--json']
  const { code, stdout, stderr } = await runCli(command, { cwd: folder, env })
  expect(stderr).toBe('')
  return { code, text: stdout, ...JSON.parse(stdout) } as Diagnosis
}

const levels = ({ findings }: Diagnosis) =>
  Object.fromEntries(findings.map(({ check, level }) => [check, level]))

test('a healthy environment has no error, and the report names server, role and eviction', async () => {
  const diagnosis = await examine()
  expect(diagnosis.code).toBe(0)
  expect(levels(diagnosis)).toMatchObject({
    environment: 'ok',
    redis: 'ok',
    'redis scripts': 'ok',
    'redis clock': 'ok',
    'redis memory': expect.stringMatching(/^(ok|not checked)$/),
    origin: 'ok',
    'audit trail': 'ok',
    'audit spool': 'ok',
    'trusted proxies': 'ok',
    gateway: 'not checked',
  })
  const found = diagnosis.findings.find(({ check }) => check === 'redis')
  expect(found?.seen).toMatch(/^(Redis|Valkey) \d+\.\d+\.\d+, (master|of unknown role)$/)
})

test('each mistake is an error with a correction, and no password is shown', async () => {
  const port = await freePort()
  const diagnosis = await examine({
    REDIS_URL: `redis://user:a-long-password@127.0.0.1:${port}`,
    ORIGIN_URL: `http://127.0.0.1:${port}`,
    AUDIT_DATABASE: `postgres://user:another-password@127.0.0.1:${port}/audit`,
    TRUSTED_PROXIES: '',
  })
  expect(diagnosis.code).toBe(1)
  expect(levels(diagnosis)).toMatchObject({
    redis: 'error',
    origin: 'error',
    'audit trail': 'error',
    'trusted proxies': 'warning',
  })
  for (const { level, remedy } of diagnosis.findings)
    if (level === 'error') expect(remedy).toBeTruthy()
  expect(diagnosis.text).not.toMatch(/a-long-password|another-password/)
})

test('a database in a folder that does not exist, and no audit trail, are reported', async () => {
  const missing = { AUDIT_DATABASE: `sqlite:${join(folder, 'none/there/audit.db')}` }
  expect(levels(await examine(missing))).toMatchObject({ 'audit trail': 'error' })
  expect(levels(await examine({ AUDIT_DATABASE: '' }))).toMatchObject({ 'audit trail': 'warning' })
})

test('mistakes in several variables are reported at once, and nothing is called', async () => {
  const { code, findings } = await examine({ REDIS_URL: 'http://a', ISSUERS: 'x', ORIGIN_URL: '' })
  expect(code).toBe(1)
  const errors = findings.filter(({ level }) => level === 'error').map(({ seen }) => seen)
  expect(errors.map((text) => text.split(':')[0])).toEqual(['REDIS_URL', 'ISSUERS', 'ORIGIN_URL'])
})

test('the readiness of a running gateway is part of the report', async () => {
  const gateway = await startHttpServer((_, response) =>
    response
      .writeHead(503, { 'content-type': 'application/json' })
      .end('{"checks":{"redis":"failed","keySets":"ok"},"breakers":{}}'),
  )
  const diagnosis = await examine({}, '--url', gateway.url)
  await gateway.close()
  expect(levels(diagnosis)).toMatchObject({ 'readiness of redis': 'error' })
})

test('issuers are shown, and secrets of clients are not', () => {
  const secret = 'a-secret-of-the-client-0001'
  const key = { kty: 'OKP', d: 'private-part-of-a-key-0002', kid: 'name-of-the-key-0003' }
  const redacted = createRedactor({
    ISSUER_CLIENTS: JSON.stringify([{ issuer: ISSUER, id: 'portcullis-web', secret }]),
    SIGNING_KEYS: JSON.stringify({ keys: [key] }),
  })
  const text = `${ISSUER} portcullis-web ${secret} ${key.d} ${key.kid}`
  expect(redacted(text)).toBe(`${ISSUER} portcullis-web *** *** ${key.kid}`)
})

test('operators() without SIGNING_KEYS is a warning, also of a policy elsewhere', async () => {
  const policy = `
    import { definePolicy } from 'portcullis'
    import { operators } from 'portcullis/operators'
    export default definePolicy({ roles: {}, limits: {}, routes: [{ method: 'GET', path: '/', anonymous: true }], features: [operators()] })
  `
  const project = await makeNodeProject('export default undefined')
  await mkdir(join(project.folder, 'deploy'))
  await rename(join(project.folder, 'portcullis.config.ts'), join(project.folder, 'other.ts'))
  await writeFile(join(project.folder, 'deploy/staging.ts'), policy)
  const run = (config: string) =>
    runCli(['doctor', '--config', config, '--json'], { cwd: project.folder, env: healthy })
  const { stdout } = await run('deploy/staging.ts')
  const missing = await run('deploy/nothing.ts')
  await project.close()
  expect([missing.code, missing.stderr]).toEqual([
    2,
    expect.stringContaining('--config: there is no file'),
  ])
  expect(
    (JSON.parse(stdout) as Diagnosis).findings.filter(({ check }) => check === 'features'),
  ).toContainEqual(
    expect.objectContaining({
      level: 'warning',
      check: 'features',
      seen: expect.stringMatching(/^without SIGNING_KEYS, operators\(\)/),
    }),
  )
})

/** compose.yaml is valid, its containers are hardened, and its Redis keeps what the gateway needs. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, onTestFinished, test } from 'vitest'
import { parse } from 'yaml'
import { ROOT } from '../harness/process.ts'
import { directTo, hasRedisServer, startRealServer } from '../harness/resp-server.ts'
import { checkEnvironment } from './environment.ts'
import { instructionsOf } from './image.ts'

const DEFAULT_GRACE_MS = 10_000

interface Service {
  readonly image?: string
  readonly user?: string
  readonly command: readonly [string, ...string[]]
  readonly environment: Readonly<Record<string, string>>
  readonly ports?: readonly string[]
  readonly networks: readonly string[]
  readonly stop_grace_period?: string
  readonly healthcheck?: { readonly test: readonly [string, string, ...string[]] }
}

const read = (path: string) => readFileSync(join(ROOT, 'ops', path), 'utf8')
const text = read('docker/compose.yaml')
const compose = parse(text, { merge: true })
const services: Readonly<Record<'gateway' | 'redis' | 'origin', Service>> = compose.services
const PASSWORD = 'password-of-redis'
const example = { ...parseEnv(read('docker/.env.example')), REDIS_PASSWORD: PASSWORD }

/** Replaces variables as Compose does. */
const withValues = (value: string) => value.replaceAll(/\$\{REDIS_PASSWORD:\?[^}]+\}/g, PASSWORD)

const schema = JSON.parse(read('../test/vectors/compose-spec/compose-spec.json'))
const isCompose = new Ajv2020({ strict: false, validateFormats: false }).compile(schema)

function mistakesOf(document: unknown): readonly string[] {
  isCompose(document)
  return (isCompose.errors ?? []).map(({ instancePath, params }) => {
    const { additionalProperty = '' } = params
    return `${instancePath}/${additionalProperty}`
  })
}

test('the file is valid for the Compose specification', () => {
  expect(mistakesOf(compose)).toEqual([])
})

test.each([
  ['an unknown field', 'mem_limit: 1g', 'mem_limits: 1g', '/services/redis/mem_limits'],
  ['a text instead of a list', 'cap_drop: [ALL]', 'cap_drop: ALL', '/services/gateway/cap_drop/'],
])('the check of the file finds %s', (_, from, to, place) => {
  expect(text).toContain(from)
  expect(mistakesOf(parse(text.replace(from, to), { merge: true }))).toContain(place)
})

describe.each(Object.entries(services))('the service %s', (name, service) => {
  test('has a read-only file system and no rights', () => {
    expect(service).toMatchObject({
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
      restart: 'unless-stopped',
      mem_limit: expect.any(String),
    })
    // The Dockerfile of the gateway has them.
    const fromImage = name === 'gateway'
    expect([service.user !== undefined, service.healthcheck !== undefined]).toEqual([
      !fromImage,
      !fromImage,
    ])
  })

  test('listens for other machines on no address', () => {
    for (const port of service.ports ?? []) expect(port).toMatch(/^127\.0\.0\.1:/)
    if (name !== 'gateway') expect(service.networks).toEqual(['backend'])
    expect(compose.networks.backend).toEqual({ internal: true })
  })
})

test('the gateway accepts the variables of the example', () => {
  expect(() => checkEnvironment(example)).toThrow(/REDIS_URL/)
  const { environment } = services.gateway
  const own = Object.entries(environment).map(([name, value]) => [name, withValues(value)])
  checkEnvironment({ ...example, ...Object.fromEntries(own) })
  expect(Object.fromEntries(own).REDIS_URL).toBe(`redis://:${PASSWORD}@redis:6379`)
})

test('the gateway trusts the host, which is the gateway of its network, and nothing else', () => {
  const [{ gateway }] = compose.networks.edge.ipam.config
  expect(services.gateway.environment.TRUSTED_PROXIES).toBe(gateway)
})

test('the gateway has more time to end than its grace periods', () => {
  const seconds = Number.parseInt(services.gateway.stop_grace_period ?? '', 10)
  expect(seconds * 1_000).toBeGreaterThan(2 * DEFAULT_GRACE_MS)
})

test('the origin runs with the version of Node of the gateway', () => {
  const [, version] = instructionsOf(read('docker/Dockerfile'))[0] ?? []
  expect(services.origin.image).toBe(`node:${version?.replace('NODE_VERSION=', '')}-alpine`)
})

describe.skipIf(!hasRedisServer)('Redis with the command and the file of the project', () => {
  function newFolder(): string {
    const folder = mkdtempSync(join(tmpdir(), 'portcullis-redis-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    return folder
  }

  /** Starts the command of the service on this machine. */
  async function startRedis(folder: string, ...options: readonly string[]) {
    const [file, ...args] = services.redis.command.map((word) =>
      withValues(word).replace('/etc/redis.conf', join(ROOT, 'ops/redis.conf')),
    )
    expect(file).toBe('redis-server')
    const server = await startRealServer([...args, '--dir', folder, ...options])
    const redis = directTo(server.port, PASSWORD)
    onTestFinished(async () => {
      redis.disconnect()
      await server.close()
    })
    return { server, redis }
  }

  test('evicts nothing, and keeps a revocation when its process is killed', async () => {
    const folder = newFolder()
    const { server, redis } = await startRedis(folder)
    expect(await redis.config('GET', 'maxmemory-policy')).toContain('noeviction')
    await redis.set('pc:revoked:test', '1')
    await server.close()
    const again = await startRedis(folder)
    expect(await again.redis.get('pc:revoked:test')).toBe('1')
  })

  test('has a revocation again after a backup and the restoration of docs/self-hosting.md', async () => {
    const [old, folder] = [newFolder(), newFolder()]
    const { server, redis } = await startRedis(old)
    await redis.set('pc:revoked:test', '1')
    const backup = ['-p', String(server.port), '-a', PASSWORD, '--rdb', join(folder, 'dump.rdb')]
    expect(spawnSync('redis-cli', backup).status).toBe(0)

    const restored = await startRedis(folder, '--appendonly', 'no')
    await restored.redis.config('SET', 'appendonly', 'yes')
    await expect
      .poll(() => restored.redis.info('persistence'))
      .toMatch(/^aof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0\r$/m)
    await restored.server.close()
    const again = await startRedis(folder)
    expect(await again.redis.get('pc:revoked:test')).toBe('1')
  })

  test('is healthy only with its password', async () => {
    const { server } = await startRedis(newFolder())
    const { environment, healthcheck } = services.redis
    const [, file = '', ...args] = healthcheck?.test ?? []
    const healthWith = (password: string) =>
      spawnSync(file, ['-p', String(server.port), ...args], {
        env: { ...process.env, REDISCLI_AUTH: password },
      }).status
    expect(healthWith(withValues(environment.REDISCLI_AUTH ?? ''))).toBe(0)
    expect(healthWith('another password')).toBe(1)
  })
})

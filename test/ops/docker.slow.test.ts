/** The Dockerfile builds a project with the packed package, and its image runs as an unprivileged user. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { chmod, mkdtemp, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { makeTarballs, type Tarballs } from '../create/tarballs.ts'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import { AUDIENCE, createKey, ISSUER, mint, type TestKey } from '../harness/issuer.ts'
import { freePort, ROOT } from '../harness/process.ts'
import { startTestRedis } from '../harness/redis.ts'
import { createConsumer, NPM_SETTINGS } from '../package/consumer.ts'
import { buildImage, type Image, instructionsOf } from './image.ts'

const DOCKERFILE = readFileSync(join(ROOT, 'ops/docker/Dockerfile'), 'utf8')
const TEMPLATE = 'packages/create-portcullis/templates/gateway'
/** The tests may run on a Node without SQLite. */
const READ_TRAIL = `
  const { DatabaseSync } = require('node:sqlite')
  const { inflateRawSync } = require('node:zlib')
  const blocks = new DatabaseSync(process.env.FILE).prepare('SELECT events FROM audit_blocks').all()
  const lines = blocks.flatMap(({ events }) => inflateRawSync(events).toString().split('\\n'))
  console.log(JSON.stringify(lines.map((line) => JSON.parse(line.split('\\t', 1)[0]).status)))`
const SECRET = 'a-secret-of-the-project'

const { devDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))

let tarballs: Tarballs
let image: Image
let origin: TestServer
let key: TestKey
let reached = 0

beforeAll(async () => {
  key = await createKey('idp')
  origin = await startHttpServer((_, response) => {
    reached += 1
    response.end('[]')
  })
  tarballs = await makeTarballs()
  // For the user of the image.
  await chmod(tarballs.folder, 0o755)
  const { hono, zod } = devDependencies
  const project = await createConsumer(tarballs.folder, 'project', {
    portcullis: `file:${tarballs.portcullis}`,
    hono,
    zod,
  })
  await project.copy(`${TEMPLATE}/portcullis.config.ts`, 'portcullis.config.ts')
  await project.write('.env', `REDIS_PASSWORD=${SECRET}\n`)
  image = await buildImage(DOCKERFILE, {
    folder: tarballs.folder,
    project: project.path,
    // The lock file of the project names the package by its path instead of the registry.
    base: {
      'bin/node': join(ROOT, 'node_modules/node/bin/node'),
      tarballs: join(tarballs.folder, 'tarballs'),
    },
    variables: NPM_SETTINGS,
  })
})

afterAll(async () => {
  await tarballs?.close()
  await origin?.close()
})

/** Starts a Redis, and `CMD`; waits until it listens. */
async function startGateway() {
  const redis = await startTestRedis()
  onTestFinished(() => redis.close())
  const port = String(await freePort())
  const volume = await mkdtemp(join(tarballs.folder, 'volume-'))
  await chmod(volume, 0o777)
  const variables = {
    PORT: port,
    PUBLIC_URL: 'https://gateway.test',
    REDIS_URL: redis.redisUrl,
    REDIS_TIMEOUT_MS: '5000',
    ORIGIN_URL: origin.url,
    AUDIT_DATABASE: `sqlite:${join(volume, 'audit.db')}`,
    ISSUERS: JSON.stringify([
      { issuer: ISSUER, audience: AUDIENCE, jwks: { keys: [key.publicJwk] } },
    ]),
  }
  const gateway = image.start(variables)
  onTestFinished(() => void gateway.kill('SIGKILL'))
  const ended = once(gateway, 'exit')
  const [line] = await Promise.race([once(gateway.stdout, 'data'), ended])
  expect(String(line)).toContain(`Portcullis is ready on http://0.0.0.0:${port}`)
  const token = await mint(key)
  return {
    async statusOf(path: string, headers: Record<string, string> = {}) {
      return (await fetch(`http://127.0.0.1:${port}${path}`, { headers })).status
    },
    authorization: `Bearer ${token}`,
    redis,
    /** The statuses in the audit trail. */
    async statuses() {
      const { stdout } = image.start({ FILE: join(volume, 'audit.db') }, ['node', '-e', READ_TRAIL])
      return JSON.parse(await text(stdout))
    },
    /** The exit code of the health check, which uses the same variables. */
    async health() {
      const [code] = await once(image.start(variables, image.health), 'exit')
      return code
    },
    async stop() {
      gateway.kill('SIGTERM')
      return await ended
    },
  }
}

describe('the image', () => {
  test('has the version of Node that the tests use', () => {
    expect(instructionsOf(DOCKERFILE)).toContainEqual([
      'ARG',
      `NODE_VERSION=${devDependencies.node}`,
    ])
    const images = instructionsOf(DOCKERFILE).filter(([name]) => name === 'FROM')
    for (const [, text] of images) expect(text).toMatch(/^node:\$\{NODE_VERSION\}-alpine\b/)
  })

  test('contains the production dependencies and the policy, and no secret of the project', async () => {
    const files = await readdir(join(image.root, image.workdir))
    expect(files.sort()).toEqual(['node_modules', 'package.json', 'portcullis.config.ts'])
  })

  test('runs as a user with a number, so that Kubernetes sees that it is not root', () => {
    expect(image.user).toMatch(/^[1-9]\d*:[1-9]\d*$/)
  })

  test('cannot be changed by its processes', async () => {
    const write = "require('node:fs').writeFileSync('portcullis.config.ts', '')"
    const script = `try { ${write} } catch ({ code }) { console.log(code) }`
    const { stdout } = image.start({}, ['node', '-e', script])
    expect(await text(stdout)).toBe('EACCES\n')
  })

  test('starts a gateway that admits, refuses, stores both in its volume, and ends without an error', async () => {
    const gateway = await startGateway()
    const { authorization } = gateway
    expect(await gateway.statusOf('/-/readyz')).toBe(200)
    const before = reached
    expect(await gateway.statusOf('/notes')).toBe(401)
    expect(reached).toBe(before)
    expect(await gateway.statusOf('/notes', { authorization })).toBe(200)
    expect(reached).toBe(before + 1)
    expect(await gateway.health()).toBe(0)
    expect(await gateway.stop()).toEqual([0, null])
    expect(await gateway.health()).toBe(1)
    expect(await gateway.statuses()).toEqual(expect.arrayContaining([200, 401]))
  })

  test('stays healthy without Redis, and its gateway answers 503 without a call of the origin', async () => {
    const gateway = await startGateway()
    const { authorization } = gateway
    expect(await gateway.statusOf('/notes', { authorization })).toBe(200)
    const before = reached
    await gateway.redis.close()
    expect(await gateway.statusOf('/notes', { authorization })).toBe(503)
    expect(await gateway.statusOf('/-/readyz')).toBe(503)
    expect(reached).toBe(before)
    expect(await gateway.health()).toBe(0)
    expect(await gateway.stop()).toEqual([0, null])
  })
})

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createIssuer, type Issuer } from 'portcullis/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import { IS_LONG, testInLong } from '../harness/long.ts'
import { ROOT } from '../harness/process.ts'
import { type CreatedProject, createProject } from './project.ts'
import { makeTarballs, type Tarballs } from './tarballs.ts'

const AUDIENCE = 'https://notes.example.com'

describe('a gateway on Node of npm create portcullis', () => {
  let tarballs: Tarballs
  let origin: TestServer
  let issuer: Issuer
  let issuerServer: TestServer
  let project: CreatedProject
  let url: string
  let reached = 0

  beforeAll(async () => {
    tarballs = await makeTarballs()
    origin = await startHttpServer((request, response) => {
      reached += 1
      response.end(JSON.stringify({ subject: request.headers['x-auth-subject'] }))
    })
    issuerServer = await startHttpServer(async (request, response) => {
      const answer = await issuer.fetch(new URL(request.url ?? '/', issuer.issuer))
      response.writeHead(answer.status, Object.fromEntries(answer.headers))
      response.end(await answer.text())
    })
    issuer = await createIssuer({ issuer: issuerServer.url, audience: AUDIENCE })
    const begin = Date.now()
    const of = ['--origin', origin.url, '--issuer', issuer.issuer, '--audience', AUDIENCE]
    const flags = ['--kind', 'node', ...of]
    project = await createProject(tarballs, 'node-gateway', { flags, linksPackages: !IS_LONG })
    url = await project.start()
    const token = await project.token('--sub', 'alice', '--role', 'reader')
    const first = await get({ Authorization: `Bearer ${token}` })
    const seconds = ((Date.now() - begin) / 1_000).toFixed(1)
    console.log(`npm create portcullis: first guarded request after ${seconds} s (${first.status})`)
    expect(first.status).toBe(200)
  }, 600_000)

  afterAll(async () => {
    await project?.stop()
    await origin?.close()
    await issuerServer?.close()
    await tarballs?.close()
  })

  const get = (headers: Record<string, string> = {}) => fetch(`${url}/notes`, { headers })

  test('forwards requests with tokens of the identity provider that the flags named', async () => {
    const token = await issuer.token({ sub: 'bob', roles: ['reader'] })
    const response = await get({ Authorization: `Bearer ${token}` })
    expect([response.status, await response.json()]).toEqual([200, { subject: 'bob' }])
  })

  test('refuses a request without a token, and the origin is not reached', async () => {
    const before = reached
    expect((await get()).status).toBe(401)
    expect(reached).toBe(before)
  })

  test('answers the requests of its README as documented', async () => {
    const { documented, received } = await project.requestsOfReadme()
    expect(documented).toEqual(['200', '401', '403'])
    expect(received).toEqual(documented)
  })

  test('passes its own tests and its type check', async () => {
    expect(await project.run('npm', 'test')).toMatch(/Tests .*1 passed/)
    await project.run('npm', 'run', '-s', 'typecheck')
  })

  testInLong(
    'finds no mistake in the variables of its example, once they are complete',
    async () => {
      const example = await project.file('.env.example')
      expect(example).toContain(issuer.issuer)
      const values = 'REDIS_URL=redis://127.0.0.1:6379\n'
      const check = `printf '${values}' | cat .env.example - > .env && npm run -s serve -- --check --values .env`
      await project.run('sh', '-euc', check)
    },
  )

  test.each([
    ['Dockerfile', 'ops/docker/Dockerfile'],
    ['compose.yaml', 'ops/docker/compose.yaml'],
    ['redis.conf', 'ops/redis.conf'],
    ['systemd/portcullis@.service', 'ops/systemd/portcullis@.service'],
  ])('its %s is the tested %s', async (name, tested) => {
    // The image also gets the tarball that the project depends on.
    const own = (await project.file(name)).replace(' portcullis-0.1.0.tgz ./', ' ./')
    expect(own).toBe(await readFile(join(ROOT, tested), 'utf8'))
  })

  test('contains no file of Workers', async () => {
    const { dependencies, devDependencies } = JSON.parse(await project.file('package.json'))
    expect(Object.keys({ ...dependencies, ...devDependencies })).not.toContain('wrangler')
    await expect(project.file('wrangler.toml')).rejects.toThrow('ENOENT')
  })
})

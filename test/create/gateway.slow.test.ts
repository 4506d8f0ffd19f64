import { readdir } from 'node:fs/promises'
import { createIssuer, type Issuer } from 'portcullis/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { alive } from '../dev/start/processes.ts'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import { type CreatedProject, createProject } from './project.ts'
import { makeTarballs, type Tarballs } from './tarballs.ts'

const AUDIENCE = 'https://notes.example.com'

describe('a gateway of npm create portcullis', () => {
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
      response.writeHead(200, { 'Content-Type': 'application/json' })
      response.end(JSON.stringify({ subject: request.headers['x-auth-subject'] }))
    })
    issuerServer = await startHttpServer(async (request, response) => {
      const answer = await issuer.fetch(new URL(request.url ?? '/', issuer.issuer))
      response.writeHead(answer.status, Object.fromEntries(answer.headers))
      response.end(await answer.text())
    })
    issuer = await createIssuer({ issuer: issuerServer.url, audience: AUDIENCE })
    const begin = Date.now()
    const flags = ['--origin', origin.url, '--issuer', issuer.issuer, '--audience', AUDIENCE]
    project = await createProject(tarballs, 'notes-gateway', { flags })
    url = await project.start()
    const first = await get(await project.token('--sub', 'alice', '--role', 'reader'))
    const seconds = ((Date.now() - begin) / 1_000).toFixed(1)
    console.log(`npm create portcullis: first guarded request after ${seconds} s (${first.status})`)
    expect(first.status).toBe(200)
  }, 600_000)

  afterAll(async () => {
    await project?.stop()
    await origin.close()
    await issuerServer.close()
    await tarballs.close()
  })

  function get(token?: string): Promise<Response> {
    const headers = token === undefined ? {} : { Authorization: `Bearer ${token}` }
    return fetch(`${url}/notes`, { headers })
  }

  test('forwards a permitted request with the identity of the caller', async () => {
    const token = await project.token('--sub', 'alice', '--role', 'reader')
    const before = reached
    const response = await get(token)
    expect(response.status).toBe(200)
    expect(await response.json()).toEqual({ subject: 'alice' })
    expect(reached).toBe(before + 1)
  })

  test('accepts tokens of the identity provider that the flags named', async () => {
    const response = await get(await issuer.token({ sub: 'bob', roles: ['reader'] }))
    expect(response.status).toBe(200)
    expect(await response.json()).toEqual({ subject: 'bob' })
  })

  test.each([
    ['without a token', 401, 'GET', []],
    ['without the permission', 403, 'POST', ['reader']],
    ['without a role', 403, 'GET', []],
  ])('refuses a request %s, and the origin is not reached', async (why, status, method, roles) => {
    const before = reached
    const token = await issuer.token({ roles })
    const headers = why === 'without a token' ? {} : { Authorization: `Bearer ${token}` }
    const response = await fetch(`${url}/notes`, { method, headers })
    expect(response.status).toBe(status)
    expect(reached).toBe(before)
  })

  test('records the refusals, and its command line finds them', async () => {
    const env = ['env', `PORTCULLIS_URL=${url}`] as const
    await expect
      .poll(() => project.run(...env, 'npx', 'portcullis', 'audit', 'query', '--decision', 'deny'))
      .toContain('missing_token')
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

  test('passes its policy tests, which reach every route', async () => {
    const output = await project.run('npm', 'run', '-s', 'policy:test', '--', '--json')
    const { ok, files, coverage } = JSON.parse(output)
    expect({ ok, files }).toEqual({
      ok: true,
      files: [{ file: 'test/notes.policy-test.ts', rows: 6, failed: 0 }],
    })
    expect(coverage.routes).toMatchObject({ tested: 2, total: 2 })
  })

  test('contains no file that git should not see, and depends on one package of ours', async () => {
    const ignored = (await project.file('.gitignore')).split('\n')
    expect(ignored).toEqual(expect.arrayContaining(['node_modules/', '.dev.vars', '.wrangler/']))
    const { dependencies } = JSON.parse(await project.file('package.json')) as {
      dependencies: Record<string, string>
    }
    expect(Object.keys(dependencies)).toEqual(['hono', 'portcullis', 'zod'])
    expect((await readdir(project.path)).sort()).toEqual([
      ...[
        '.dev.vars',
        '.git',
        '.github',
        '.gitignore',
        '.vscode',
        '.wrangler',
        'README.md',
        'node_modules',
      ],
      ...['package-lock.json', 'package.json', 'portcullis-0.1.0.tgz', 'portcullis.config.ts'],
      ...['test', 'tsconfig.json', 'workers', 'wrangler.toml'],
    ])
  })

  test('can be deployed: wrangler bundles every Worker', async () => {
    expect(await project.run('npm', 'run', '-s', 'deploy', '--', '--dry-run')).toContain(
      'notes-gateway',
    )
  })

  test('ends with all its processes at SIGTERM', async () => {
    const family = project.processes()
    expect(family.length).toBeGreaterThan(2)
    await project.stop()
    // npm ends with its shell. The processes detect that, and end by themselves.
    await expect.poll(() => alive(family)).toEqual([])
  })
})

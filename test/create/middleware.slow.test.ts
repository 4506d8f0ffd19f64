import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type CreatedProject, createProject } from './project.ts'
import { makeTarballs, type Tarballs } from './tarballs.ts'

describe('a middleware of npm create portcullis', () => {
  let tarballs: Tarballs
  let project: CreatedProject
  let url: string

  beforeAll(async () => {
    tarballs = await makeTarballs()
    const flags = ['--kind', 'middleware']
    project = await createProject(tarballs, 'notes-app', { flags })
    url = await project.start()
  }, 600_000)

  afterAll(async () => {
    await project?.stop()
    await tarballs.close()
  })

  async function headersOf(role: string) {
    const token = await project.token('--sub', 'alice', '--role', role)
    return { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
  }

  test('answers a permitted request with the verified caller', async () => {
    const response = await fetch(`${url}/notes`, { headers: await headersOf('reader') })
    expect(response.status).toBe(200)
    expect(await response.json()).toEqual({ notesOf: 'alice' })
  })

  test('answers a public route without a token', async () => {
    expect(await (await fetch(`${url}/health`)).json()).toEqual({ ok: true })
  })

  test('refuses a request without a token, without the permission, and with invalid input', async () => {
    const post = (headers: Record<string, string>, text: string) =>
      fetch(`${url}/notes`, { method: 'POST', headers, body: JSON.stringify({ text }) })
    expect((await fetch(`${url}/notes`)).status).toBe(401)
    expect((await post(await headersOf('reader'), 'a')).status).toBe(403)
    expect((await post(await headersOf('writer'), '')).status).toBe(422)
    expect((await post(await headersOf('writer'), 'a')).status).toBe(201)
  })

  test('answers the requests of its README as documented', async () => {
    const { documented, received } = await project.requestsOfReadme()
    expect(documented).toEqual(['200', '401', '403'])
    expect(received).toEqual(documented)
  })

  test('passes its own tests while it runs, and its type check', async () => {
    expect(await project.run('npm', 'test')).toMatch(/Tests .*1 passed/)
    await project.run('npm', 'run', '-s', 'typecheck')
  })

  test('can be deployed: wrangler bundles the Worker', async () => {
    await project.run('npx', 'wrangler', 'deploy', '--dry-run', '--outdir', 'dist')
    expect(await project.file('dist/app.js')).toContain('/notes')
  })
})

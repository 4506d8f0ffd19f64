/** Deploys, checks and takes back an app that guards its own routes. */
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type CloudflareApi, startCloudflareApi } from '../../harness/cloudflare-api.ts'
import { startHttpServer, type TestServer } from '../../harness/http-server.ts'
import { ROOT } from '../../harness/process.ts'
import { runCli } from '../command-line.ts'
import { createProject, type Project, REDIS_TOKEN } from './project.ts'

const WRANGLER = `
name = "notes"
main = "app.ts"
compatibility_date = "2026-11-17"
compatibility_flags = ["no_nodejs_compat", "no_nodejs_compat_v2"]
tsconfig = ${JSON.stringify(join(ROOT, 'tsconfig.json'))}

[vars]
ISSUER = "https://idp.test/"

[secrets]
required = ["UPSTASH_REDIS_REST_TOKEN", "NOTES_KEY"]
`

const APP = `
import { Hono } from 'hono'
import { portcullis } from 'portcullis/hono'
const guard = portcullis((env) => ({ issuers: [], redis: { url: env.UPSTASH_REDIS_REST_URL, token: env.UPSTASH_REDIS_REST_TOKEN } }))
export default new Hono().use(guard)
`

const KEY = 'a-secret-of-the-app-51c3'
const FILE = '.portcullis/production.env'

let api: CloudflareApi
let project: Project
let app: TestServer
let answer = { status: 401, code: 'missing_token' }
const asked: string[] = []

beforeAll(async () => {
  app = await startHttpServer((request, response) => {
    asked.push(request.url ?? '')
    response.writeHead(answer.status, { 'Content-Type': 'application/problem+json' })
    response.end(JSON.stringify({ code: answer.code }))
  })
  api = await startCloudflareApi()
  project = await createProject(api, app.url)
  await project.write('wrangler.toml', WRANGLER)
  await project.write('app.ts', APP)
})

afterAll(async () => {
  await project?.close()
  await api?.close()
  await app?.close()
})

const secrets = () =>
  (api.worker('notes')?.versions.at(-1)?.bindings ?? [])
    .filter(({ type }) => type === 'secret_text')
    .map(({ name, text }) => [name, text])
    .sort()

test('--dry-run bundles the app, without a call', async () => {
  const { code, stdout, stderr } = await project.deploy(['--dry-run'])
  expect(code, stderr).toBe(0)
  expect(stdout).toMatch(/^notes: \d+\.\d KiB, gzip \d+\.\d KiB$/m)
  expect(api.calls()).toEqual([])
})

test('a required secret without a value, and a value of a name in [vars], are mistakes', async () => {
  const missing = await project.deploy(['--plan'])
  expect(missing.code).toBe(2)
  expect(missing.stderr).toContain('NOTES_KEY')
  await project.write(FILE, `NOTES_KEY=${KEY}\nISSUER=https://other.test/\n`)
  const both = await project.deploy(['--yes'])
  expect(both.code).toBe(2)
  expect(both.stderr).toContain('is in [vars] of wrangler.toml too')
  expect(api.writes()).toEqual([])
  const operator = await project.deploy(['--yes', '--create-operator'])
  expect([operator.code, operator.stderr]).toEqual([2, expect.stringContaining('no operators')])
})

test('the app gets each value of the file as a secret, and is ready when its guard refuses', async () => {
  await project.write(FILE, `NOTES_KEY=${KEY}\n`)
  const { code, stdout, stderr } = await project.deploy(['--yes'])
  expect(code, stderr).toBe(0)
  expect(secrets()).toEqual([
    ['NOTES_KEY', KEY],
    ['UPSTASH_REDIS_REST_TOKEN', REDIS_TOKEN],
    ['UPSTASH_REDIS_REST_URL', 'https://redis.example.com'],
  ])
  expect(new Set(asked)).toEqual(new Set(['/']))
  expect(stdout).toContain('npx portcullis deploy rollback')
  expect(stdout + stderr).not.toContain(KEY)
})

test('an app with wrong options is deployed and not ready, and the way back is named', async () => {
  answer = { status: 500, code: 'misconfigured' }
  const { code, stderr } = await project.deploy(['--yes', '--wait', '1s'])
  expect(code).toBe(3)
  expect(stderr).toContain('status 500, misconfigured')
  expect(stderr).toContain('npx portcullis deploy rollback')
})

test('rollback returns to the version before', async () => {
  const [first, second] = api.worker('notes')?.versions ?? []
  expect(api.worker('notes')?.active).toBe(second?.id)
  const { code, stdout, stderr } = await project.deploy(['rollback', '--yes'])
  expect(code, stderr).toBe(0)
  expect(stdout).toContain(`notes serves version ${first?.id} again`)
  expect(api.worker('notes')?.active).toBe(first?.id)
})

test('doctor checks the files and the running app, and says what it cannot see', async () => {
  const examine = async () => {
    const args = ['doctor', '--json', '--url', app.url]
    const { code, stdout } = await runCli(args, { cwd: project.path, env: {} })
    const { findings } = JSON.parse(stdout) as { findings: { check: string; level: string }[] }
    return { code, found: findings.map(({ check, level }) => `${check}: ${level}`) }
  }
  answer = { status: 401, code: 'missing_token' }
  expect(await examine()).toEqual({
    code: 0,
    found: ['wrangler.toml: ok', 'app: ok', 'options: not checked'],
  })
  answer = { status: 500, code: 'misconfigured' }
  expect(await examine()).toMatchObject({
    code: 1,
    found: ['app: error', 'wrangler.toml: ok', 'options: not checked'],
  })
})

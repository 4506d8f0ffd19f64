/** Commands in a project that has a policy and no Worker: `portcullis dev`, `token`, `doctor` and `deploy`. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePort } from '../harness/process.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'
import { makeNodeProject } from '../runtimes/node/project.ts'
import { type RunningCommand, runCli, startCli } from './command-line.ts'

const policyOf = (permission: string, field = 'permission') => `
import { definePolicy } from 'portcullis'
export default definePolicy({
  roles: { reader: ['notes:read'] },
  limits: {},
  routes: [
    { method: 'GET', path: '/notes', ${field}: '${permission}' },
  ],
})
`

let project: Awaited<ReturnType<typeof makeNodeProject>>
let redis: TestRedis
let dev: RunningCommand
let url: string
let authorization: string

const put = (text: string) => writeFileSync(join(project.folder, 'portcullis.config.ts'), text)

async function answerOf(headers: Record<string, string> = {}) {
  const response = await fetch(`${url}/notes`, { headers })
  const text = await response.text()
  return { status: response.status, reachedOrigin: text.includes('"origin":"demo"') }
}

beforeAll(async () => {
  project = await makeNodeProject(policyOf('notes:read'))
  redis = await startTestRedis()
  const port = await freePort()
  url = `http://127.0.0.1:${port}`
  const env = { PORT: String(port), REDIS_URL: redis.redisUrl, REDIS_TIMEOUT_MS: '5000' }
  dev = startCli(['dev'], { cwd: project.folder, env })
  await dev.printed(/^Portcullis is ready on /m)
  const { stdout } = await runCli(['token', '--sub', 'alice', '--role', 'reader'], {
    cwd: project.folder,
  })
  authorization = `Bearer ${stdout.trim()}`
})
afterAll(async () => {
  dev?.kill('SIGTERM')
  await dev?.ended
  await redis?.close()
  await project?.close()
})

test('dev serves the policy on Node, and its token is accepted', async () => {
  expect(await answerOf({ authorization })).toEqual({ status: 200, reachedOrigin: true })
  expect(await answerOf()).toEqual({ status: 401, reachedOrigin: false })
})

test('dev uses a saved policy, says what changed, and keeps the old one after a mistake', async () => {
  put(policyOf('notes:list'))
  const { stderr } = await dev.printed(/policy: changed\n.+\n/)
  expect(stderr).toMatch(/ {2}narrowing: reader loses GET \/notes\n/)
  expect(await answerOf({ authorization })).toEqual({ status: 403, reachedOrigin: false })
  put(policyOf('notes:read', 'permision'))
  const mistake = await dev.printed(/the old one stays.*\n/)
  expect(mistake.stderr).toMatch(
    /portcullis\.config\.ts:7:5: policy: the old one stays; .*"permision"/,
  )
  expect(mistake.stderr).toContain('did you mean "permission"?')
  expect(await answerOf({ authorization })).toEqual({ status: 403, reachedOrigin: false })
  put(policyOf('notes:read'))
  await dev.printed(/gains GET \/notes\n/)
  expect(await answerOf({ authorization })).toEqual({ status: 200, reachedOrigin: true })
})

test('doctor checks the variables of a server, and asks for no wrangler.toml', async () => {
  const { stdout, stderr } = await runCli(['doctor', '--json'], { cwd: project.folder })
  expect(stdout + stderr).not.toContain('wrangler')
  expect(stdout).toContain('REDIS_URL')
})

test.each([{ command: ['deploy', '--plan'] }, { command: ['deploy', 'rollback', '--yes'] }])(
  '$command says how a gateway on Node is deployed',
  async ({ command }) => {
    const { code, stderr } = await runCli(command, { cwd: project.folder })
    expect(code).toBe(2)
    expect(stderr).toContain('is a gateway on Node')
    expect(stderr).toContain('docs/self-hosting.md')
  },
)

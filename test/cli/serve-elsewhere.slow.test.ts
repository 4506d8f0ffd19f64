/** `portcullis serve` on runtimes other than Node, and on the oldest Node that it supports. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import { IS_LONG } from '../harness/long.ts'
import { freePort, ROOT } from '../harness/process.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'
import { makeNodeProject } from '../runtimes/node/project.ts'
import { CLI } from './command-line.ts'

const POLICY = `
import { definePolicy } from 'portcullis'
export default definePolicy({
  roles: {},
  limits: {},
  routes: [{ method: 'GET', path: '/open', anonymous: true }],
})
`

const BIN = join(ROOT, 'node_modules/.bin')

let project: Awaited<ReturnType<typeof makeNodeProject>>
let redis: TestRedis
let origin: TestServer

beforeAll(async () => {
  project = await makeNodeProject(POLICY)
  redis = await startTestRedis()
  origin = await startHttpServer((_, response) => response.end('[]'))
})

afterAll(async () => {
  await origin?.close()
  await redis?.close()
  await project?.close()
})

const environment = (port: number) => ({
  PATH: process.env.PATH ?? '',
  HOME: project.folder,
  REDIS_URL: redis.redisUrl,
  REDIS_TIMEOUT_MS: '5000',
  PUBLIC_URL: 'https://gateway.test',
  ORIGIN_URL: origin.url,
  PORT: String(port),
})

// It installs that Node from npm.
test.runIf(IS_LONG)('on Node 22, serve forwards what the policy allows', async () => {
  const binary = `node-${process.platform}-${process.arch}`
  const folder = join(project.folder, 'node22')
  execFileSync('npm', ['install', '--prefix', folder, '--no-audit', '--no-fund', `${binary}@22`])
  const program = join(folder, 'node_modules', binary, 'bin/node')
  const port = await freePort()
  const child = spawn(program, [CLI, 'serve'], {
    cwd: project.folder,
    env: environment(port),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  for await (const text of child.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false }))
    if (text.includes('ready')) break
  expect(execFileSync(program, ['--version'], { encoding: 'utf8' })).toMatch(/^v22\./)
  const answers = await Promise.all(
    ['/open', '/other'].map((path) => fetch(`http://127.0.0.1:${port}${path}`)),
  )
  expect(answers.map(({ status }) => status)).toEqual([200, 404])
  child.kill('SIGTERM')
  expect(await exited).toEqual([0, null])
})

describe.each([
  ['Bun', join(BIN, 'bun'), []],
  ['Deno', join(BIN, 'deno'), ['run', '--allow-all']],
] as const)('on %s', (name, command, before) => {
  test.each([[[]], [['--check']]])('serve %j ends at once, and names the runtime', async (args) => {
    const child = spawn(command, [...before, CLI, 'serve', ...args], {
      cwd: project.folder,
      env: environment(0),
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let printed = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        printed += text
        // It serves: what it does next is not the question.
        if (text.includes('ready')) child.kill('SIGKILL')
      })
    const code = await new Promise((resolve) => child.once('close', resolve))
    expect(printed).toContain(`the server needs Node, and this is ${name}`)
    expect(code).toBe(2)
  })
})

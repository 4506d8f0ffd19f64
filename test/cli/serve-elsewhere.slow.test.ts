/** `portcullis serve` on runtimes other than Node. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import { ROOT } from '../harness/process.ts'
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

describe.each([
  ['Bun', join(BIN, 'bun'), []],
  ['Deno', join(BIN, 'deno'), ['run', '--allow-all']],
] as const)('on %s', (name, command, before) => {
  test.each([[[]], [['--check']]])('serve %j ends at once, and names the runtime', async (args) => {
    const child = spawn(command, [...before, CLI, 'serve', ...args], {
      cwd: project.folder,
      env: {
        PATH: process.env.PATH ?? '',
        HOME: project.folder,
        REDIS_URL: redis.redisUrl,
        PUBLIC_URL: 'https://gateway.test',
        ORIGIN_URL: origin.url,
        PORT: '0',
      },
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

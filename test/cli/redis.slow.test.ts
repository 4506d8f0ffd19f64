/** The command `portcullis redis` as a separate process. */
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { startRedis } from '../../dev/redis.ts'
import { type CliEnvironment, type RunningCommand, runCli, startCli } from './command-line.ts'

const TOKEN = 'token-for-tests'
const READY =
  /^UPSTASH_REDIS_REST_URL=(http:\/\/127\.0\.0\.1:\d+)\nUPSTASH_REDIS_REST_TOKEN=([\w-]+)\n$/

const REDIS_URL = /^redis:\/\/127\.0\.0\.1:\d+$/

let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portcullis-redis-'))
})

afterAll(() => rm(folder, { recursive: true, force: true }))

/** Starts the command on a free port. It ends with the test. */
function start(args: readonly string[] = [], environment?: CliEnvironment): RunningCommand {
  const command = startCli(['redis', '--port', '0', ...args], environment)
  onTestFinished(async () => {
    command.kill('SIGTERM')
    await command.ended
  })
  return command
}

/** Resolves with the URL and the token that the command prints when it is ready. */
async function ready(command: RunningCommand): Promise<{ url: string; token: string }> {
  const { stdout } = await command.printed(READY)
  const [, url = '', token = ''] = READY.exec(stdout) ?? []
  return { url, token }
}

async function call(url: string, token: string, command: readonly string[]) {
  const response = await fetch(url, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}` },
    body: JSON.stringify(command),
  })
  return { status: response.status, body: await response.json() }
}

/** Reports whether a server listens on the port of `url`. */
function isListening(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  return new Promise((resolve) => {
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
  }).finally(() => socket.destroy()) as Promise<boolean>
}

test('serves SET and GET to callers with the printed token, and refuses others', async () => {
  const { url, token } = await ready(start())
  expect(await call(url, token, ['SET', 'a', '1'])).toEqual({ status: 200, body: { result: 'OK' } })
  expect(await call(url, token, ['GET', 'a'])).toEqual({ status: 200, body: { result: '1' } })
  expect((await call(url, `${token}x`, ['GET', 'a'])).status).toBe(401)
  expect((await fetch(`${url}/get/a`)).status).toBe(401)
})

test('says which REDIS_URL an app over sockets uses, unless the caller named a Redis', async () => {
  const { stderr } = await start().printed(/REDIS_URL=\S+\n/)
  expect(/REDIS_URL=(\S+)/.exec(stderr)?.[1]).toMatch(REDIS_URL)
  const redis = await startRedis()
  onTestFinished(redis.close)
  const named = start(['--json'], { env: { REDIS_URL: redis.url } })
  expect((await named.printed(/\n$/)).stdout).not.toContain('redisUrl')
})

test('generates another token each time', async () => {
  const [one, other] = await Promise.all([ready(start()), ready(start())])
  expect(one.token).toMatch(/^[\w-]{32}$/)
  expect(other.token).not.toBe(one.token)
})

test('prints one object in one line with --json, with the token of the environment', async () => {
  const command = start(['--json'], { env: { UPSTASH_REDIS_REST_TOKEN: TOKEN } })
  const { stdout, stderr } = await command.printed(/\n$/)
  expect(stderr).toBe('')
  expect(stdout).toMatch(/^[^\n]+\n$/)
  const { url, token, redisUrl } = JSON.parse(stdout)
  expect(token).toBe(TOKEN)
  expect(redisUrl).toMatch(REDIS_URL)
  expect((await call(url, TOKEN, ['PING'])).status).toBe(200)
})

test('uses the token of .env only if the URL there is on this machine', async () => {
  const file = join(folder, '.env')
  const lines = (url: string) =>
    `UPSTASH_REDIS_REST_URL=${url}\nUPSTASH_REDIS_REST_TOKEN=${TOKEN}\n`
  await writeFile(file, lines('http://127.0.0.1:8079'))
  expect((await ready(start([], { cwd: folder }))).token).toBe(TOKEN)
  await writeFile(file, lines('https://eu1.upstash.io'))
  expect((await ready(start([], { cwd: folder }))).token).not.toBe(TOKEN)
})

test('uses the Redis at REDIS_URL, and leaves it running', async () => {
  const redis = await startRedis()
  onTestFinished(redis.close)
  const command = start([], { env: { REDIS_URL: redis.url } })
  const { url, token } = await ready(command)
  await call(url, token, ['SET', 'kept', 'yes'])
  command.kill('SIGTERM')
  expect((await command.ended).code).toBe(0)
  expect(await isListening(redis.url)).toBe(true)
})

test.each(['SIGINT', 'SIGTERM'] as const)(
  '%s stops the server and its Redis with exit code 0',
  async (signal) => {
    const command = start()
    const { url, token } = await ready(command)
    const { body } = await call(url, token, ['INFO', 'server'])
    const { result } = body as { result: string }
    const port = /tcp_port:(\d+)/.exec(result)?.[1]
    const servers = port === undefined ? [url] : [url, `http://127.0.0.1:${port}`]
    for (const server of servers) expect(await isListening(server)).toBe(true)
    command.kill(signal)
    expect((await command.ended).code).toBe(0)
    for (const server of servers) expect(await isListening(server)).toBe(false)
    // A process that is gone cannot receive a signal. The embedded Redis has no other process.
    const id = /process_id:(\d+)/.exec(result)?.[1]
    if (id !== undefined) expect(() => process.kill(Number(id), 0)).toThrow('ESRCH')
  },
)

test('a port that is in use is reported with exit code 1', async () => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  onTestFinished(() => void other.close())
  const { port } = other.address() as AddressInfo
  const { code, stdout, stderr } = await runCli(['redis', '--port', String(port), '--json'])
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  const detail = `port ${port} on 127.0.0.1 is already in use`
  expect(JSON.parse(stderr).error).toMatchObject({ code: 'not_running', detail })
})

test('a Redis that does not answer is reported without its password', async () => {
  const env = { REDIS_URL: 'redis://:secret@127.0.0.1:1' }
  const { code, stdout, stderr } = await runCli(['redis', '--port', '0'], { env })
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  expect(stderr).toBe(
    'portcullis: not_running: REDIS_URL: no response from Redis at 127.0.0.1:1 (ECONNREFUSED)\n',
  )
})

test.each([
  ['an invalid port', ['--port', '65536'], {}],
  ['a token that no header can carry', [], { UPSTASH_REDIS_REST_TOKEN: 'two words' }],
])('%s is wrong usage', async (_, args, env) => {
  const { code, stdout, stderr } = await runCli(['redis', ...args], { env })
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).not.toContain('two words')
})

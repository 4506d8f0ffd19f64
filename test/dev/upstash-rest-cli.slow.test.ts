/** The command `upstash-rest` as a separate process. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { Redis as TcpRedis } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import { startRedis } from '../../dev/redis.ts'

const TOKEN = 'token-for-tests'
const READY = /^Upstash REST is ready on (http:\/\/127\.0\.0\.1:\d+) \(Redis: (\w+)\)\n$/

function run(args: readonly string[], env: Record<string, string> = {}) {
  const { REDIS_URL: _, UPSTASH_REDIS_REST_TOKEN: __, ...rest } = process.env
  const child = spawn(process.execPath, ['dev/upstash-rest.ts', ...args], {
    env: { ...rest, ...env },
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const output = { out: '', err: '' }
  child.stdout.on('data', (chunk) => {
    output.out += chunk
  })
  child.stderr.on('data', (chunk) => {
    output.err += chunk
  })
  const ended = once(child, 'close').then(([code]) => ({ code, ...output }))
  const ready = new Promise<string>((resolve, reject) => {
    child.stdout.on('data', () => output.out.endsWith('\n') && resolve(output.out))
    void ended.then(({ err }) => reject(new Error(err)))
  })
  ready.catch(() => {})
  return { child: child as ChildProcess, ready, ended }
}

test('--help names every option and starts nothing', async () => {
  const { code, out } = await run(['--help']).ended
  expect(code).toBe(0)
  for (const option of ['--port', '--token', '--redis-url', '--embedded', '--help']) {
    expect(out).toContain(option)
  }
})

test.each([
  ['no token', []],
  ['an unknown option', ['--token', TOKEN, '--verbose']],
  ['an invalid port', ['--token', TOKEN, '--port', '65536']],
  [
    'options that exclude one another',
    ['--token', TOKEN, '--embedded', '--redis-url', 'redis://x'],
  ],
  ['an invalid URL', ['--token', TOKEN, '--redis-url', 'localhost']],
  [
    'a Redis that does not answer',
    ['--token', TOKEN, '--redis-url', 'redis://:secret@127.0.0.1:1'],
  ],
])('%s is reported in one line with exit code 1', async (_, args) => {
  const { code, out, err } = await run(args).ended
  expect(code).toBe(1)
  expect(out).toBe('')
  expect(err).toMatch(/^upstash-rest: [^\n]+\n$/)
  expect(err).not.toMatch(/secret|token-for-tests/)
})

test('a port that is in use is reported in one line', async () => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  onTestFinished(() => void other.close())
  const port = String((other.address() as AddressInfo).port)
  const { code, err } = await run(['--token', TOKEN, '--embedded', '--port', port]).ended
  expect(code).toBe(1)
  expect(err).toBe(`upstash-rest: port ${port} on 127.0.0.1 is already in use\n`)
})

test.each(['SIGINT', 'SIGTERM'] as const)(
  '%s ends the server and its streams with exit code 0',
  async (signal) => {
    const { child, ready, ended } = run(['--port', '0', '--embedded'], {
      UPSTASH_REDIS_REST_TOKEN: TOKEN,
    })
    const [, url, kind] = READY.exec(await ready) ?? []
    expect(kind).toBe('embedded')
    const headers = { authorization: `Bearer ${TOKEN}`, accept: 'text/event-stream' }
    const stream = await fetch(`${url}/subscribe/channel`, { method: 'POST', headers })
    expect(stream.status).toBe(200)
    child.kill(signal)
    await expect(stream.text()).rejects.toThrow()
    expect(await ended).toMatchObject({ code: 0, err: '' })
    await expect(fetch(`${url}/ping`, { headers })).rejects.toThrow()
  },
)

test('the server does not print the token', async () => {
  const { child, ready, ended } = run(['--port', '0', '--embedded', '--token', TOKEN])
  await ready
  child.kill('SIGTERM')
  const { out, err } = await ended
  expect(out + err).not.toContain(TOKEN)
})

test('the server does not stop a Redis that it did not start', async () => {
  const redis = await startRedis({ prefer: 'embedded' })
  onTestFinished(() => redis.close())
  const { child, ready, ended } = run(['--port', '0', '--token', TOKEN], { REDIS_URL: redis.url })
  expect(READY.exec(await ready)?.[2]).toBe('external')
  child.kill('SIGTERM')
  expect((await ended).code).toBe(0)
  const tcp = new TcpRedis(redis.url)
  onTestFinished(() => tcp.disconnect())
  expect(await tcp.ping()).toBe('PONG')
})

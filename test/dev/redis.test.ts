/** Starts and stops the Redis for local use. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { expect, onTestFinished, test, vi } from 'vitest'
import { startRedis } from '../../dev/redis.ts'

const found = await startRedis({ prefer: 'server' }).catch(() => undefined)
await found?.close()

function connect(url: string): Redis {
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => null })
  redis.on('error', () => {})
  onTestFinished(() => redis.disconnect())
  return redis
}

test.each(['server', 'embedded'] as const)(
  'a Redis of kind %s responds until it is closed',
  async (prefer) => {
    if (prefer === 'server' && found === undefined) return
    const redis = await startRedis({ prefer })
    expect(redis.kind).toBe(prefer)
    expect(await connect(redis.url).echo('hello')).toBe('hello')
    await redis.close()
    await expect(connect(redis.url).connect()).rejects.toThrow()
  },
)

test.runIf(found)(
  'a redis-server ends with the process that started it, even after SIGKILL',
  async () => {
    const code = `const { startRedis } = await import('./dev/redis.ts')
    console.log((await startRedis({ prefer: 'server' })).url)`
    const owner = spawn(process.execPath, ['--input-type=module', '-e', code], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [line] = await once(owner.stdout, 'data')
    const url = String(line).trim()
    expect(await connect(url).ping()).toBe('PONG')
    owner.kill('SIGKILL')
    await expect
      .poll(() =>
        connect(url)
          .connect()
          .then(String, () => 'gone'),
      )
      .toBe('gone')
  },
)

test.runIf(found)(
  'a redis-server does not read what another one has saved in the same folder',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'portcullis-redis-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    vi.stubEnv('TMPDIR', folder)
    onTestFinished(() => void vi.unstubAllEnvs())
    const first = await startRedis({ prefer: 'server' })
    const saved = connect(first.url)
    await saved.set('key', 'value')
    await saved.save()
    await first.close()
    const [file = ''] = readdirSync(folder)
    renameSync(join(folder, file), join(folder, 'dump.rdb'))
    const second = await startRedis({ prefer: 'server' })
    onTestFinished(() => second.close())
    expect(await connect(second.url).exists('key')).toBe(0)
  },
)

test('two instances share no data', async () => {
  const [first, second] = await Promise.all([startRedis(), startRedis()])
  onTestFinished(async () => {
    await Promise.all([first.close(), second.close()])
  })
  await connect(first.url).set('key', 'value')
  expect(await connect(second.url).exists('key')).toBe(0)
})

test('startRedis uses REDIS_URL by default, and does not stop that server', async () => {
  const running = await startRedis({ prefer: 'embedded' })
  onTestFinished(() => running.close())
  vi.stubEnv('REDIS_URL', running.url)
  onTestFinished(() => void vi.unstubAllEnvs())
  const redis = await startRedis()
  expect(redis).toMatchObject({ kind: 'external', url: running.url })
  await redis.close()
  expect(await connect(running.url).ping()).toBe('PONG')
  const other = await startRedis({ prefer: 'embedded' })
  onTestFinished(() => other.close())
  expect(other.url).not.toBe(running.url)
})

test.each([
  ['redis://user:secret@127.0.0.1:1', 'no response from Redis at 127.0.0.1:1 (ECONNREFUSED)'],
  ['127.0.0.1:6379', 'the Redis URL must look like redis://host:port'],
  ['http://secret@localhost', 'the Redis URL must look like redis://host:port'],
])('startRedis throws one error with the cause for %s', async (url, message) => {
  await expect(startRedis({ url })).rejects.toThrow(new Error(message))
})

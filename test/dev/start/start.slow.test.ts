import { readdir, stat } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RedisHandle, startRedis } from '../../../dev/redis.ts'
import { freePort } from '../../harness/process.ts'
import { type Checkout, type Command, makeCheckout } from './checkout.ts'
import { pasteAll } from './paste.ts'
import { alive, descendantsOf } from './processes.ts'

const ALL_SAID = /^# 403.*\ncurl .*\n# .*\nnpx .*\n/m

function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}

async function get(port: number, token: string): Promise<Response> {
  return fetch(`http://127.0.0.1:${port}/orders`, { headers: { Authorization: `Bearer ${token}` } })
}

describe('npm start', () => {
  let checkout: Checkout
  let redis: RedisHandle
  let ports: [number, number]
  let first: Command
  let firstOutput: string

  beforeAll(async () => {
    checkout = await makeCheckout()
    redis = await startRedis()
    ports = [await freePort(), await freePort()]
    first = checkout.run(['npm', 'start'], { PORT: String(ports[0]), REDIS_URL: redis.url })
    firstOutput = (await first.printed(ALL_SAID)).stdout
  })

  afterAll(async () => {
    await checkout.close()
    await redis.close()
  })

  async function token(...args: string[]): Promise<string> {
    const { stdout } = await checkout.run(['npm', 'run', '-s', 'token', '--', ...args]).ended
    return stdout.trim()
  }

  async function databases(): Promise<string[]> {
    const names = await readdir(join(checkout.path, '.wrangler'))
    return names.filter((name) => name.startsWith('state')).sort()
  }

  it('prints that it is ready once, without output of wrangler', () => {
    const lines = firstOutput.split('\n').filter((line) => line !== '' && !line.startsWith('>'))
    expect(lines[0]).toBe(`Portcullis is ready on http://127.0.0.1:${ports[0]}`)
    expect(lines.slice(1).map((line) => line.trim().split(/[ =]/)[0])).toEqual([
      ...['URL', 'Docs', 'Token', 'TOKEN'],
      ...['#', 'curl', '#', 'curl', '#', 'curl', '#', 'curl', '#', 'curl', '#', 'npx'],
    ])
    // A token would have 400 characters.
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(240)
  })

  it('suggests requests with correct expected responses', async () => {
    const statuses = ['200', '401', '403', '200', '403']
    expect(await pasteAll(firstOutput, checkout)).toEqual(statuses)
  })

  it('prints one line for each decision, with the path and without control characters', async () => {
    await fetch(`http://127.0.0.1:${ports[0]}/orders/1?q=secret`)
    const { stdout } = await first.printed(/^GET +\/orders\/1 +401 +missing_token +- +\d+ ms$/m)
    expect(stdout).not.toContain('secret')
    await fetch(`http://127.0.0.1:${ports[0]}/a%1b%5b31m`)
    await first.printed(/^GET +\/a\\u\{1b\}\[31m +400 /m)
  })

  it('suggests a command that works', async () => {
    const [, suggested = ''] = /^npx (portcullis .*)$/m.exec(firstOutput) ?? []
    const [, ...args] = suggested.split(' ')
    expect(args.at(-1)).toBe(`http://127.0.0.1:${ports[0]}`)
    const command = ['npm', 'run', '-s', 'portcullis', '--', ...args] as const
    const { code, stderr } = await checkout.run(command).ended
    expect(code, stderr).toBe(0)
  })

  it('keeps its secrets in a file that only its owner can read', async () => {
    const { mode } = await stat(join(checkout.path, '.dev.vars'))
    expect((mode & 0o777).toString(8)).toBe('600')
  })

  it('accepts what `npm run -s token` prints', async () => {
    expect((await get(ports[0], await token('--sub', 'carol', '--role', 'reader'))).status).toBe(
      200,
    )
    expect((await get(ports[0], await token('--sub', 'carol'))).status).toBe(403)
  })

  it('refuses a port that is in use, in one line', async () => {
    const { code, stderr } = await checkout.run(['node', 'dev/start.ts'], {
      PORT: String(ports[0]),
    }).ended
    expect(code).toBe(1)
    expect(stderr).toBe(
      `portcullis: port ${ports[0]} on 127.0.0.1 is already in use; choose another with PORT\n`,
    )
  })

  it.each(['SIGHUP', 'SIGTERM'] as const)(
    'ends at %s while it is still starting',
    async (signal) => {
      const starting = checkout.run(['node', 'dev/start.ts'], { PORT: String(ports[1]) })
      await starting.printed(/starting the Workers/)
      const family = descendantsOf(starting.pid)
      starting.child.kill(signal)
      const { code, stdout } = await starting.ended
      expect({ code, stdout }).toEqual({ code: 0, stdout: '' })
      expect(alive(family)).toEqual([])
      expect(await canListen(ports[1])).toBe(true)
    },
  )

  it('runs twice at once from one checkout: two gateways with one Redis', async () => {
    const second = checkout.run(['node', 'dev/start.ts'], {
      PORT: String(ports[1]),
      REDIS_URL: redis.url,
    })
    await second.printed(ALL_SAID)
    const bearer = await token('--sub', 'dave', '--role', 'reader')
    const remaining = async (port: number) => {
      const answer = await get(port, bearer)
      expect(answer.status).toBe(200)
      return Number(/;r=(\d+)/.exec(answer.headers.get('RateLimit') ?? '')?.[1])
    }
    const before = await remaining(ports[0])
    expect(await remaining(ports[1])).toBe(before - 1)
    expect(await remaining(ports[0])).toBe(before - 2)
    for (const port of ports) {
      const list = ['npm', 'run', '-s', 'portcullis', '--', 'keys', 'list', '--json'] as const
      const env = { PORTCULLIS_URL: `http://127.0.0.1:${port}` }
      const { code, stdout, stderr } = await checkout.run(list, env).ended
      expect(code, stderr).toBe(0)
      expect(JSON.parse(stdout).keys.length).toBe(1)
    }
    expect(await databases()).toEqual(['state', `state-${ports[1]}`])
    expect(await checkout.file('.dev.vars')).toContain(`PUBLIC_URL='http://127.0.0.1:${ports[0]}'`)

    const family = descendantsOf(second.pid)
    expect(family.length).toBeGreaterThan(2)
    second.child.kill('SIGINT')
    expect((await second.ended).code).toBe(0)
    expect(alive(family)).toEqual([])
    expect((await get(ports[0], bearer)).status).toBe(200)
    expect(await databases()).toEqual(['state'])
  })

  it('ends with all its processes when npm gets SIGTERM', async () => {
    const family = descendantsOf(first.pid)
    expect(family.length).toBeGreaterThan(2)
    first.child.kill('SIGTERM')
    expect((await first.ended).code).toBe(0)
    expect(alive(family)).toEqual([])
    expect(await canListen(ports[0])).toBe(true)
  })
})

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RedisHandle, startRedis } from '../../../dev/redis.ts'
import { testInLong } from '../../harness/long.ts'
import { freePort } from '../../harness/process.ts'
import { type Checkout, type Command, makeCheckout } from './checkout.ts'
import { pasteAll } from './paste.ts'
import { alive, descendantsOf } from './processes.ts'

describe('npm run start:node', () => {
  let checkout: Checkout
  let redis: RedisHandle
  let port: number
  let command: Command
  let stdout: string

  beforeAll(async () => {
    checkout = await makeCheckout()
    redis = await startRedis()
    port = await freePort()
    const env = { PORT: String(port), REDIS_URL: redis.url }
    command = checkout.run(['npm', 'run', 'start:node'], env)
    stdout = (await command.printed(/^npx portcullis .*\n/m)).stdout
  })

  afterAll(async () => {
    await checkout.close()
    await redis.close()
  })

  it('prints the same ready line and requests as npm start, with correct expected responses', async () => {
    expect(stdout).toContain(`\nPortcullis is ready on http://127.0.0.1:${port}\n`)
    const statuses = ['200', '401', '403', '200', '403']
    expect(await pasteAll(stdout, checkout)).toEqual(statuses)
    await command.printed(/^POST +\/orders +403 +permission_missing:orders:write +alice +\d+ ms$/m)
  })

  testInLong('suggests a command that works', async () => {
    const [, suggested = ''] = /^npx portcullis (.*)$/m.exec(stdout) ?? []
    const args = ['npm', 'run', '-s', 'portcullis', '--', ...suggested.split(' ')] as const
    const { code, stdout: listed, stderr } = await checkout.run(args).ended
    expect(code, stderr).toBe(0)
    expect(listed).toContain('missing_token')
  })

  it('accepts what `npm run -s token` prints', async () => {
    const args = ['npm', 'run', '-s', 'token', '--', '--sub', 'carol', '--role', 'reader'] as const
    const token = (await checkout.run(args).ended).stdout.trim()
    const headers = { authorization: `Bearer ${token}` }
    const response = await fetch(`http://127.0.0.1:${port}/orders`, { headers })
    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject({ origin: 'demo', caller: { subject: 'carol' } })
  })

  testInLong('serves the policy of PORTCULLIS_CONFIG, and each saved version of it', async () => {
    const policy = `import { definePolicy } from 'portcullis'
      export default definePolicy({
        roles: {},
        limits: {},
        routes: [{ method: 'GET', path: '/hello', anonymous: true }],
      })`
    await writeFile(join(checkout.path, 'other.ts'), policy)
    const other = await freePort()
    const second = checkout.run(['npm', 'run', 'start:node'], {
      PORT: String(other),
      REDIS_URL: redis.url,
      PORTCULLIS_CONFIG: 'other.ts',
    })
    await second.printed(/^Portcullis is ready on /m)
    const statuses = ['/hello', '/orders'].map(async (path) => {
      const { status } = await fetch(`http://127.0.0.1:${other}${path}`)
      return status
    })
    expect(await Promise.all(statuses)).toEqual([200, 404])
    await writeFile(join(checkout.path, 'other.ts'), policy.replaceAll('/hello', '/bye'))
    await second.printed(/anonymous .*gain GET \/bye/)
    expect((await fetch(`http://127.0.0.1:${other}/bye`)).status).toBe(200)
    second.child.kill('SIGTERM')
    expect((await second.ended).code).toBe(0)
  })

  it('ends with all its processes at SIGTERM', async () => {
    const family = descendantsOf(command.pid)
    command.child.kill('SIGTERM')
    expect((await command.ended).code).toBe(0)
    expect(alive(family)).toEqual([])
  })
})

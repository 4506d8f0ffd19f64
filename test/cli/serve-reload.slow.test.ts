/** `portcullis serve` replaces its policy on SIGHUP and with `--watch`. */
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { Agent, request as send } from 'node:http'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { descendantsOf } from '../dev/start/processes.ts'
import { startHttpServer } from '../harness/http-server.ts'
import { testInLong } from '../harness/long.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'
import { makeNodeProject } from '../runtimes/node/project.ts'
import { startCli } from './command-line.ts'

const POLICY = `
import { definePolicy } from 'portcullis'
import { routes } from './routes.ts'
import limits from './limits.json' with { type: 'json' }
export default definePolicy({ roles: {}, limits, routes })
`
const routesOf = (...paths: readonly string[]) =>
  `export const routes = ${JSON.stringify(
    paths.map((path) => ({ method: 'GET', path, anonymous: true, limits: ['some'] })),
  )}`
const limitsOf = (limit: number) =>
  JSON.stringify({
    some: { limit, windowSeconds: 3600, by: 'address', onUnavailable: 'deny' },
  })

let project: Awaited<ReturnType<typeof makeNodeProject>>
let redis: TestRedis
let origin: Awaited<ReturnType<typeof startHttpServer>>
let env: Record<string, string>
let reached: string[] = []
/** Ends the response of the origin to `/open?held`. */
let release = () => {}

const put = (name: string, text: string) => writeFileSync(join(project.folder, name), text)

beforeAll(async () => {
  project = await makeNodeProject(POLICY)
  redis = await startTestRedis()
  origin = await startHttpServer(({ url = '' }, response) => {
    reached.push(url)
    if (url !== '/open?held') return void response.end('[]')
    response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n')
    release = () => response.end('data: 2\n\n')
  })
  env = {
    REDIS_URL: redis.redisUrl,
    REDIS_TIMEOUT_MS: '5000',
    PUBLIC_URL: 'https://gateway.test',
    ORIGIN_URL: origin.url,
    PORT: '0',
  }
})
beforeEach(async () => {
  reached = []
  put('portcullis.config.ts', POLICY)
  put('routes.ts', routesOf('/open', '/old'))
  put('limits.json', limitsOf(10_000))
  await redis.direct.flushall()
})
afterAll(async () => {
  await origin?.close()
  await redis?.close()
  await project?.close()
})

async function served(...args: readonly string[]) {
  const command = startCli(['serve', ...args], { cwd: project.folder, env })
  onTestFinished(async () => {
    release()
    command.kill('SIGTERM')
    await command.ended
  })
  const { stdout } = await command.printed(/ready on .+\n/)
  const { url, pid }: { url: string; pid: number } = JSON.parse(stdout)
  /** Returns the lines of the log, when one of them matches. */
  async function log(what: RegExp): Promise<readonly Record<string, unknown>[]> {
    const { stdout } = await command.printed(what)
    return stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
  }
  return { command, url, pid, log }
}

const agent = new Agent({ keepAlive: true, maxSockets: 20 })

/** Returns the status of a request on a kept connection, or the code of its error. */
const statusOf = (url: string, through: Agent | false = agent) =>
  new Promise<number | string>((resolve) => {
    send(url, { agent: through }, (response) => {
      response
        .resume()
        .on('end', () => resolve(response.statusCode ?? 0))
        .on('error', ({ message }) => resolve(message))
    })
      .on('error', ({ code }: NodeJS.ErrnoException) => resolve(String(code)))
      .end()
  })

/** Sends 200 requests a second, and returns the statuses that occurred. */
async function load(url: string, seconds: number) {
  const sent: Promise<number | string>[] = []
  for (let tick = 0; tick < seconds * 20; tick += 1) {
    for (let count = 0; count < 10; count += 1) sent.push(statusOf(url))
    await wait(50)
  }
  return new Set(await Promise.all(sent))
}

describe('SIGHUP', () => {
  test('uses the new policy with its imports, without a failed request or a cut stream', async () => {
    const { command, url, log } = await served()
    const stream = await fetch(`${url}/open?held`)
    const connections: unknown[] = []
    const kept = new Agent({ keepAlive: true, maxSockets: 1 })
    kept.on('free', (socket) => connections.push(socket))
    expect([await statusOf(`${url}/old`, kept), await statusOf(`${url}/new`, kept)]).toEqual([
      200, 404,
    ])
    const loaded = load(`${url}/open`, 3)
    await wait(1_000)
    put('routes.ts', routesOf('/open', '/new'))
    put('limits.json', limitsOf(9_000))
    command.kill('SIGHUP')
    const [event] = (await log(/policy_changed.*\n/)).filter(
      ({ reason }) => reason === 'policy_changed',
    )
    await log(/"policy: changed".*\n/)
    expect([await statusOf(`${url}/old`, kept), await statusOf(`${url}/new`, kept)]).toEqual([
      404, 200,
    ])
    expect(await loaded).toEqual(new Set([200]))
    release()
    expect(await stream.text()).toBe('data: 1\n\ndata: 2\n\n')
    expect(new Set(connections).size).toBe(1)
    expect(reached.filter((path) => path !== '/open')).toEqual(['/open?held', '/old', '/new'])
    const digest = expect.stringMatching(/^[0-9a-f]{64}$/)
    expect(event).toMatchObject({
      status: 0,
      decision: 'allow',
      change: { action: 'policy.changed', target: digest },
      fields: {
        'policy.by': expect.stringMatching(/^SIGHUP \(.+@.+\)$/),
        'policy.before': digest,
        'policy.changes': '3',
        'policy.change.1': 'narrowing: anonymous and no role lose GET /old (route removed)',
        'policy.change.2': 'widening: anonymous and no role gain GET /new (new route)',
        'policy.change.3':
          'narrowing: limits.some: 10000 per 60 min by address becomes 9000 per 60 min by address: tighter',
      },
    })
  })

  test('a wrong policy or an absent file keeps the old one, and each mistake is logged', async () => {
    const { command, url, log } = await served()
    put(
      'routes.ts',
      `export const routes = [
  { method: 'GET', path: '/new', anonymous: true, limit: ['some'] },
  { method: 'GET', path: '/x', anonymous: true, Limits: [] },
]`,
    )
    command.kill('SIGHUP')
    const lines = await log(/Limits.*\n/)
    const errors = lines.filter(({ level }) => level === 'error')
    const unknown = (line: number, name: string) => ({
      message: `policy: the old one stays; routes[${line - 2}]: Unrecognized key: "${name}"`,
      suggestion: 'did you mean "limits"?',
      file: join(project.folder, 'routes.ts'),
      line,
    })
    expect(errors).toMatchObject([unknown(2, 'limit'), unknown(3, 'Limits')])
    rmSync(join(project.folder, 'limits.json'))
    command.kill('SIGHUP')
    await log(/the old one stays.*limits\.json.*\n/)
    expect([await statusOf(`${url}/old`), await statusOf(`${url}/new`)]).toEqual([200, 404])
    put('limits.json', limitsOf(10_000))
    put('routes.ts', routesOf('/open', '/new'))
    command.kill('SIGHUP')
    await log(/"policy: changed".*\n/)
    expect([await statusOf(`${url}/old`), await statusOf(`${url}/new`)]).toEqual([404, 200])
  })

  testInLong('loads a linked package of the workspace again', async () => {
    const shared = join(project.folder, 'packages/shared')
    mkdirSync(shared, { recursive: true })
    symlinkSync(shared, join(project.folder, 'node_modules/shared'))
    put('packages/shared/package.json', '{ "type": "module", "exports": "./index.ts" }')
    put('packages/shared/index.ts', routesOf('/old'))
    put('routes.ts', `export { routes } from 'shared'`)
    const { command, url, log } = await served()
    expect([await statusOf(`${url}/old`), await statusOf(`${url}/new`)]).toEqual([200, 404])
    put('packages/shared/index.ts', routesOf('/new'))
    command.kill('SIGHUP')
    await log(/"policy: (?:not )?changed".*\n/)
    expect([await statusOf(`${url}/old`), await statusOf(`${url}/new`)]).toEqual([404, 200])
  })

  test('the windows of limits survive', async () => {
    put('limits.json', limitsOf(3))
    const { command, url, log } = await served()
    expect([await statusOf(`${url}/old`), await statusOf(`${url}/old`)]).toEqual([200, 200])
    put('routes.ts', routesOf('/new'))
    command.kill('SIGHUP')
    await log(/"policy: changed".*\n/)
    expect([await statusOf(`${url}/new`), await statusOf(`${url}/new`)]).toEqual([200, 429])
    expect(reached).toEqual(['/old', '/old', '/new'])
  })

  test('all workers switch, and the audit trail has the change once', async () => {
    const { command, url, pid, log } = await served('--workers', '2')
    expect(descendantsOf(pid).length).toBe(2)
    const loaded = load(`${url}/open`, 2)
    put('routes.ts', routesOf('/open', '/new'))
    command.kill('SIGHUP')
    const lines = await log(/("policy: changed"[\s\S]*){2}\n/)
    expect(
      new Set(lines.filter(({ message }) => message === 'policy: changed').map(({ pid }) => pid))
        .size,
    ).toBe(2)
    const statuses = await Promise.all(
      Array.from({ length: 40 }, () => statusOf(`${url}/old`, false)),
    )
    expect(new Set(statuses)).toEqual(new Set([404]))
    expect(await loaded).toEqual(new Set([200]))
    expect((await log(/./)).filter(({ reason }) => reason === 'policy_changed').length).toBe(1)
    put('routes.ts', 'export const routes = 1')
    command.kill('SIGHUP')
    await log(/the old one stays.*\n/)
    expect(await statusOf(`${url}/new`, false)).toBe(200)
  })

  test('a worker that refuses a policy that others use restarts, so that one policy is in use', async () => {
    const { command, url, pid, log } = await served('--workers', '3')
    const before = descendantsOf(pid)
    put(
      'routes.ts',
      `import cluster from 'node:cluster'
if (cluster.worker?.id === 2) throw new Error('not here')
${routesOf('/open', '/new')}`,
    )
    command.kill('SIGHUP')
    const lines = await log(/of 3 workers[\s\S]*"a worker is ready".*\n/)
    expect(lines.find(({ message }) => String(message).includes('of 3'))).toMatchObject({
      level: 'error',
      message: 'policy: 2 of 3 workers use the new one; the others restart',
    })
    const now = descendantsOf(pid)
    expect([now.length, now.filter((one) => before.includes(one)).length]).toEqual([3, 2])
    const statuses = await Promise.all(
      Array.from({ length: 40 }, () => statusOf(`${url}/old`, false)),
    )
    expect(new Set(statuses)).toEqual(new Set([404]))
  })
})

testInLong(
  '--watch uses a saved file, an import of it, and one that comes back after it was removed',
  async () => {
    const { url, log } = await served('--watch')
    put('routes.ts', routesOf('/new'))
    await log(/("policy: changed"[\s\S]*){1}\n/)
    expect([await statusOf(`${url}/old`), await statusOf(`${url}/new`)]).toEqual([404, 200])
    rmSync(join(project.folder, 'routes.ts'))
    await log(/the old one stays.*routes\.ts.*\n/)
    expect(await statusOf(`${url}/new`)).toBe(200)
    put('routes.ts', routesOf('/old'))
    await log(/("policy: changed"[\s\S]*){2}\n/)
    expect([await statusOf(`${url}/old`), await statusOf(`${url}/new`)]).toEqual([200, 404])
    put('portcullis.config.ts', POLICY.replace('roles: {}', "roles: { reader: ['orders:read'] }"))
    await log(/("policy: changed"[\s\S]*){3}\n/)
  },
)

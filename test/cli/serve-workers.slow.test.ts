/** `portcullis serve --workers`: several processes behave as one gateway. */
import { request as send } from 'node:http'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { alive, descendantsOf } from '../dev/start/processes.ts'
import { startHttpServer } from '../harness/http-server.ts'
import { usualOrLong } from '../harness/long.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'
import { makeNodeProject } from '../runtimes/node/project.ts'
import { type RunningCommand, runCli, startCli } from './command-line.ts'

const LIMIT = 200
const POLICY = `
import { definePolicy } from 'portcullis'
const some = { limit: ${LIMIT}, windowSeconds: 3600, by: 'address', onUnavailable: 'deny' } as const
export default definePolicy({
  roles: {},
  limits: { some, other: some },
  routes: [
    { method: 'GET', path: '/open', anonymous: true },
    { method: 'GET', path: '/counted', anonymous: true, limits: ['some'] },
    { method: 'GET', path: '/counted-too', anonymous: true, limits: ['other'] },
  ],
})
`

let project: Awaited<ReturnType<typeof makeNodeProject>>
let redis: TestRedis
let origin: Awaited<ReturnType<typeof startHttpServer>>
let reached = 0
/** Ends the responses of the origin to `/open`. */
let release: (() => void)[] = []
let env: Record<string, string>

beforeAll(async () => {
  project = await makeNodeProject(POLICY)
  redis = await startTestRedis()
  origin = await startHttpServer(({ url }, response) => {
    reached += 1
    if (url === '/open?held') release.push(() => response.end('[]'))
    else response.end('[]')
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
  reached = 0
  release = []
  await redis.direct.flushall()
})
afterAll(async () => {
  await origin?.close()
  await redis?.close()
  await project?.close()
})

/** Returns the ids of the two workers of a gateway. Throws if there are not two. */
function workersOf(pid: number): readonly [number, number] {
  const [one, other, ...more] = descendantsOf(pid)
  if (one === undefined || other === undefined || more.length > 0)
    throw new Error(`process ${pid} does not have two workers`)
  return [one, other]
}

/** Starts two workers, and returns their ids. */
async function start() {
  const command = startCli(['serve', '--workers', '2'], { cwd: project.folder, env })
  try {
    const { stdout } = await command.printed(/ready on .+\n/)
    const { url, pid, ...line } = JSON.parse(stdout)
    expect(line).toEqual({
      level: 'info',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      message: `Portcullis is ready on ${url}`,
      workers: 2,
    })
    return { command, url, pid, workers: workersOf(pid) }
  } catch (error) {
    command.kill('SIGTERM')
    throw error
  }
}

async function end(command: RunningCommand): Promise<void> {
  command.kill('SIGTERM')
  for (const close of release) close()
  await command.ended
}

/** Starts two workers until the end of the test. */
async function served() {
  const started = await start()
  onTestFinished(() => end(started.command))
  return started
}

/** Returns the status of a request on a connection of its own, or the code of its error. */
const statusOf = (url: string) =>
  new Promise<number | string>((resolve) => {
    send(url, { agent: false }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode ?? 0))
    })
      .on('error', ({ code }: NodeJS.ErrnoException) => resolve(String(code)))
      .end()
  })

const count = (outcomes: readonly unknown[], wanted: unknown) =>
  outcomes.filter((outcome) => outcome === wanted).length

describe('two workers', () => {
  /** One gateway for the tests that leave it serving. */
  let shared: Awaited<ReturnType<typeof start>>
  beforeAll(async () => {
    shared = await start()
  })
  afterAll(async () => {
    if (shared !== undefined) await end(shared.command)
  })

  test('share one exact limit', async () => {
    const { url } = shared
    const requests = Array.from({ length: LIMIT + 50 }, () => statusOf(`${url}/counted`))
    const outcomes = await Promise.all(requests)
    expect([count(outcomes, 200), count(outcomes, 429)]).toEqual([LIMIT, 50])
    expect(reached).toBe(LIMIT)
  })

  test('with one killed under load: no limit is exceeded, the other serves, and a new one starts', async () => {
    const { command, url, pid, workers } = shared
    const [victim, other] = workers
    const outcomes: (number | string)[] = []
    const client = async () => {
      while (outcomes.length < LIMIT + 100) outcomes.push(await statusOf(`${url}/counted-too`))
    }
    const load = Promise.all(Array.from({ length: 8 }, client))
    await expect.poll(() => count(outcomes, 200)).toBeGreaterThan(20)
    process.kill(victim, 'SIGKILL')
    await load
    expect(reached).toBeLessThanOrEqual(LIMIT)
    // A killed worker may have counted requests that it did not answer: at most one of each client.
    expect(count(outcomes, 200)).toBeGreaterThanOrEqual(LIMIT - 8)
    const cut = outcomes.filter((outcome) => outcome !== 200 && outcome !== 429)
    expect(cut.length).toBeLessThanOrEqual(8)
    expect(new Set(['ECONNRESET', ...cut])).toEqual(new Set(['ECONNRESET']))
    await command.printed(/"a worker is ready"/)
    const { stdout } = await command.printed(/"a worker ended"/)
    expect(stdout).toContain(`"worker":${victim},"code":null,"signal":"SIGKILL"`)
    const now = descendantsOf(pid)
    expect([now.length, now.includes(other), now.includes(victim)]).toEqual([2, true, false])
    expect(await statusOf(`${url}/open`)).toBe(200)
  })

  test('both serve: the end of one cuts its connections only', async () => {
    const { url, pid } = shared
    const [victim] = workersOf(pid)
    const held: Promise<number | string>[] = []
    while (held.length < 60) {
      held.push(statusOf(`${url}/open?held`))
      await expect.poll(() => release.length, { interval: 1 }).toBe(held.length)
    }
    process.kill(victim, 'SIGKILL')
    await Promise.any(held)
    for (const end of release) end()
    const outcomes = await Promise.all(held)
    expect(new Set(outcomes)).toEqual(new Set([200, 'ECONNRESET']))
  })

  test.each(usualOrLong<readonly NodeJS.Signals[]>(['SIGTERM'], ['SIGTERM', 'SIGINT']))(
    'answer the requests that they have after %s, even if it reaches each process',
    async (signal) => {
      const { command, url, pid, workers } = await served()
      const held = Array.from({ length: 10 }, () => statusOf(`${url}/open?held`))
      await expect.poll(() => release.length).toBe(10)
      for (const one of [pid, ...workers]) process.kill(one, signal)
      await expect.poll(() => statusOf(url)).toBe('ECONNREFUSED')
      for (const end of release) end()
      expect(await Promise.all(held)).toEqual(Array(10).fill(200))
      expect((await command.ended).code).toBe(0)
      expect(alive([pid, ...workers])).toEqual([])
    },
  )

  test('end at once after a second signal, and when the primary is killed', async () => {
    for (const signals of [['SIGTERM', 'SIGINT'], ['SIGKILL']] as const) {
      const { command, url, pid, workers } = await served()
      const held = statusOf(`${url}/open?held`)
      await expect.poll(() => release.length).toBeGreaterThan(0)
      for (const signal of signals) {
        command.kill(signal)
        if (signal === 'SIGTERM') await command.printed(/"stopping"/)
      }
      expect(await held).toBe('ECONNRESET')
      await expect.poll(() => alive([pid, ...workers])).toEqual([])
      release = []
    }
  })
})

test('a mistake is reported once, and nothing is started', async () => {
  const { code, stdout, stderr } = await runCli(['serve', '--workers', '2'], {
    cwd: project.folder,
    env: { ...env, ORIGIN_URL: 'x' },
  })
  expect([code, stdout]).toEqual([2, ''])
  expect(stderr).toBe(
    'portcullis: The environment is not valid:\n  - ORIGIN_URL: must be an http or https URL\n',
  )
})

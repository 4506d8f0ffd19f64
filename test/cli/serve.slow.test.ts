/** `portcullis serve` in a project whose `portcullis` is the source of this checkout. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { get as getSecure } from 'node:https'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { HEAP_FLAGS } from '../../cli/heap-flags.ts'
import { openSpoolFile } from '../../src/runtimes/node/audit/spool/file.ts'
import { writeAuthority, writeCertificate } from '../harness/certificate.ts'
import { startHttpServer } from '../harness/http-server.ts'
import { testInLong } from '../harness/long.ts'
import { freePort } from '../harness/process.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'
import { makeNodeProject } from '../runtimes/node/project.ts'
import { CLI, runCli, startCli } from './command-line.ts'

let project: Awaited<ReturnType<typeof makeNodeProject>>
let folder: string
let redis: TestRedis
let origin: Awaited<ReturnType<typeof startHttpServer>>
let reached = 0
/** A complete environment. */
let env: Record<string, string>

const POLICY = `
import { definePolicy } from 'portcullis'
export default definePolicy({
  roles: {},
  limits: {},
  routes: [{ method: 'GET', path: '/open', anonymous: true }],
})
`

beforeAll(async () => {
  project = await makeNodeProject(POLICY)
  folder = project.folder
  redis = await startTestRedis()
  origin = await startHttpServer((_, response) => {
    reached += 1
    response.end('[]')
  })
  env = {
    REDIS_URL: redis.redisUrl,
    REDIS_TIMEOUT_MS: '5000',
    PUBLIC_URL: 'https://gateway.test',
    ORIGIN_URL: origin.url,
    PORT: '0',
  }
})
beforeEach(() => {
  reached = 0
})
afterAll(async () => {
  await origin?.close()
  await redis?.close()
  await project?.close()
})

/** Starts the command, and returns its URL. It is killed at the end of the test. */
async function served(args: readonly string[] = [], variables = env) {
  const command = startCli(['serve', ...args], { cwd: folder, env: variables })
  onTestFinished(() => command.kill('SIGKILL'))
  const { stdout } = await command.printed(/ready on .+\n/)
  return { command, url: /ready on ([^"]+)/.exec(stdout)?.[1] ?? '' }
}

describe('the configuration', () => {
  test('serves with the variables of the environment, and ends with 0 after a signal', async () => {
    const { command, url } = await served()
    expect((await fetch(`${url}/open`)).status).toBe(200)
    expect(reached).toBe(1)
    command.kill('SIGTERM')
    expect((await command.ended).code).toBe(0)
  })

  test.each([{ args: [] }, { args: ['--workers', '2'] }])(
    'bounds the heap of each process with $args',
    async ({ args }) => {
      const seen = join(folder, 'flags.txt')
      rmSync(seen, { force: true })
      const spy = join(folder, 'spy.mjs')
      writeFileSync(
        spy,
        `import { appendFileSync } from 'node:fs'
        import { syncBuiltinESMExports } from 'node:module'
        import v8 from 'node:v8'
        const set = v8.setFlagsFromString
        v8.setFlagsFromString = (flag) => {
          appendFileSync(${JSON.stringify(seen)}, process.pid + ' ' + flag + '\\n')
          set(flag)
        }
        syncBuiltinESMExports()`,
      )
      const { url } = await served(args, { ...env, NODE_OPTIONS: `--import=${spy}` })
      expect((await fetch(`${url}/open`)).status).toBe(200)
      const set = new Set(readFileSync(seen, 'utf8').trim().split('\n'))
      // A primary process and its workers.
      for (const flag of HEAP_FLAGS)
        expect([...set].filter((line) => line.endsWith(` ${flag}`))).toHaveLength(
          args.length === 0 ? 1 : 3,
        )
      expect(set.size).toBe(HEAP_FLAGS.length * (args.length === 0 ? 1 : 3))
    },
  )

  test('the log has no error for events of the spool that are sent', async () => {
    const AUDIT_SPOOL = join(folder, 'left')
    const left = openSpoolFile(AUDIT_SPOOL, 1_048_576)
    left.append(['{}'], Date.now())
    left.close()
    const { command } = await served([], { ...env, AUDIT_STREAM: 'redis', AUDIT_SPOOL })
    const { stdout } = await command.printed(/audit: sent .+\n/)
    const line = stdout.split('\n').find((text) => text.includes('audit: sent')) ?? ''
    expect(JSON.parse(line)).toMatchObject({
      level: 'info',
      message: `audit: sent 1 events of the spool ${AUDIT_SPOOL} to Redis`,
    })
    expect(stdout).not.toContain('"level":"error"')
  })

  test('a log that cannot be written ends nothing, and keeps no request waiting', async () => {
    const port = await freePort()
    const script = `exec "$0" "$1" serve > /dev/full`
    const child = spawn('/bin/sh', ['-c', script, process.execPath, CLI], {
      cwd: folder,
      env: { PATH: process.env.PATH, ...env, PORT: `${port}` },
      stdio: 'ignore',
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    const url = `http://127.0.0.1:${port}/open`
    await expect.poll(() => fetch(url).then(({ status }) => status, String)).toBe(200)
    for (let count = 0; count < 50; count++) expect((await fetch(url)).status).toBe(200)
    expect(reached).toBe(51)
    expect(child.exitCode).toBe(null)
    child.kill('SIGTERM')
    expect(await once(child, 'exit')).toEqual([0, null])
  })

  testInLong('of a file with --values, below that of the environment', async () => {
    const lines = Object.entries(env).map(([name, value]) => `${name}=${value}\n`)
    writeFileSync(join(folder, 'values.env'), lines.join(''))
    const { url } = await served(['--values', 'values.env'], { HOST: '127.0.0.2', PORT: '0' })
    expect(url).toMatch(/^http:\/\/127\.0\.0\.2:/)
    expect((await fetch(`${url}/open`)).status).toBe(200)
  })

  test.each([{ args: ['--check'] }, { args: [] }])(
    'names all mistakes at once with $args',
    async ({ args }) => {
      const { code, stdout, stderr } = await runCli(['serve', ...args], {
        cwd: folder,
        env: {
          REDIS_URL: 'http://127.0.0.1',
          PUBLIC_URL: 'gateway',
          PORT: 'web',
          TRUSTED_PROXIES: '10.0.0.0/8, 10.0.0.0/40, proxy',
          TLS_CERT_FILE: 'cert.pem',
        },
      })
      expect(code).toBe(2)
      expect(stdout).toBe('')
      const lines = stderr.split('\n').filter((line) => line.startsWith('  - '))
      expect(lines.map((line) => line.slice(4).split(':')[0]).sort()).toEqual([
        'ORIGIN_URL',
        'PORT',
        'PUBLIC_URL',
        'REDIS_URL',
        'TLS_KEY_FILE',
        'TRUSTED_PROXIES',
        'TRUSTED_PROXIES',
      ])
      expect(stderr).toContain('TRUSTED_PROXIES: "10.0.0.0/40" is not a network')
      expect(stderr).toContain('PORT: must be a number from 0 to 65535')
    },
  )

  test.each([
    [['--values', 'absent.env'], 'absent.env does not exist'],
    [['--config', 'absent.ts'], 'absent.ts'],
    [['--port', '65536'], 'It must be a number from 0 to 65535.'],
  ])('%s is a wrong usage', async (args, text) => {
    const { code, stderr } = await runCli(['serve', ...args], { cwd: folder, env })
    expect([code, stderr]).toEqual([2, expect.stringContaining(text)])
  })

  testInLong('a mistake in the policy is named on its own line', async () => {
    writeFileSync(join(folder, 'wrong.ts'), POLICY.replace("'/open'", "'open'"))
    const wrong = ['serve', '--check', '--config', 'wrong.ts']
    const { code, stderr } = await runCli(wrong, { cwd: folder, env })
    expect([code, stderr]).toEqual([
      2,
      expect.stringMatching(/^portcullis: .+\n {2}- routes\[0\]\.path: .+\n$/),
    ])
  })

  testInLong('a port in use is reported', async () => {
    const { url } = await served()
    const { port } = new URL(url)
    const { code, stderr } = await runCli(['serve', '--port', port], { cwd: folder, env })
    expect([code, stderr]).toEqual([1, expect.stringMatching(/ is already in use; .+PORT/)])
  })
})

describe('a second signal', () => {
  test('ends the process at once, with 1', async () => {
    let waiting = 0
    const held = await startHttpServer(() => {
      waiting += 1
    })
    onTestFinished(() => held.close())
    const { command, url } = await served([], { ...env, ORIGIN_URL: held.url })
    const answer = fetch(`${url}/open`).then(
      () => 'answered',
      () => 'cut',
    )
    await expect.poll(() => waiting).toBe(1)
    command.kill('SIGTERM')
    await expect.poll(() => fetch(url).then(String, () => 'refused')).toBe('refused')
    command.kill('SIGINT')
    expect((await command.ended).code).toBe(1)
    expect(await answer).toBe('cut')
  })
})

test('the log is a JSON object a line, without queries of URLs', async () => {
  const jwksUri = `${origin.url}/keys?secret=hidden`
  const issuers = [{ issuer: 'https://idp.test', audience: 'https://gateway.test', jwksUri }]
  const { command, url } = await served([], { ...env, ISSUERS: JSON.stringify(issuers) })
  expect((await fetch(`${url}/-/readyz`)).status).toBe(503)
  await command.printed(/"dependency_down"/)
  command.kill('SIGTERM')
  const { stdout, stderr } = await command.ended
  expect(stderr).toBe('')
  expect(stdout).not.toContain('hidden')
  const lines = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  const common = { time: expect.stringMatching(/^\d{4}-.+Z$/), pid: expect.any(Number) }
  expect(lines).toEqual([
    { ...common, level: 'info', message: `Portcullis is ready on ${url}`, url },
    expect.objectContaining({
      ...common,
      level: 'warn',
      message: 'refresh_failed',
      uri: `${origin.url}/keys`,
    }),
    expect.objectContaining({
      ...common,
      level: 'error',
      message: 'dependency_down',
      target: `${origin.url}/keys`,
    }),
    { ...common, level: 'info', message: 'stopping', signal: 'SIGTERM' },
    { ...common, level: 'info', message: 'stopped' },
  ])
})

test('warnings of Node and of libraries, texts of threads, and an uncaught error are lines of the log', async () => {
  const noise = join(folder, 'noise.mjs')
  writeFileSync(
    noise,
    `import { Worker } from 'node:worker_threads'
    setTimeout(() => {
      process.emitWarning('careful', 'OddWarning')
      process.stderr.write('half a ')
      process.stderr.write('line\\nand another\\n')
      new Worker("console.error('from a thread'); process.emitWarning('threaded')", { eval: true }).on(
        'exit',
        () => setTimeout(() => { throw new TypeError('of a caller') }, 50),
      )
    }, 300)`,
  )
  const { command } = await served([], { ...env, NODE_OPTIONS: `--import ${noise}` })
  await command.printed(/uncaught exception/)
  command.kill('SIGTERM')
  const { code, stdout, stderr } = await command.ended
  expect([code, stderr]).toEqual([0, ''])
  const lines = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  for (const line of lines)
    expect(line).toMatchObject({ time: expect.any(String), level: expect.any(String) })
  const messages = lines.map(({ message }) => message).join('\n')
  for (const text of ['careful', 'half a line\nand another', 'from a thread', 'threaded'])
    expect(messages).toContain(text)
  expect(stdout).not.toContain('of a caller')
})

describe('TLS', () => {
  let ca: Buffer
  beforeAll(() => {
    writeAuthority(folder)
    for (const name of ['first', 'second']) writeCertificate(folder, name)
    ca = readFileSync(join(folder, 'ca.pem'))
  })

  const use = (name: string, key = name) => {
    copyFileSync(join(folder, `${name}.pem`), join(folder, 'tls.pem'))
    copyFileSync(join(folder, `${key}.key`), join(folder, 'tls.key'))
  }
  const secure = () => ({
    ...env,
    TLS_CERT_FILE: join(folder, 'tls.pem'),
    TLS_KEY_FILE: join(folder, 'tls.key'),
  })
  /** Returns the status and the name in the certificate of a new connection. */
  const asked = (url: string) =>
    new Promise<unknown>((resolve, reject) => {
      getSecure(`${url}/open`, { ca, agent: false }, (response) => {
        const { subject } = (response.socket as TLSSocket).getPeerCertificate()
        resolve([response.resume().statusCode, subject.CN])
      }).on('error', reject)
    })

  test('uses changed files for new connections, and keeps the old pair if the new one is wrong', async () => {
    use('first')
    const { command, url } = await served([], secure())
    expect(url).toMatch(/^https:/)
    expect(await asked(url)).toEqual([200, 'first'])
    use('second', 'first')
    command.kill('SIGHUP')
    await command.printed(/certificate: the old one stays/)
    expect(await asked(url)).toEqual([200, 'first'])
    use('second')
    command.kill('SIGHUP')
    await command.printed(/certificate: changed/)
    expect(await asked(url)).toEqual([200, 'second'])
  })

  test('refuses TLS 1.1 and plain HTTP', async () => {
    use('first')
    const { url } = await served([], secure())
    const old = new Promise((resolve) => {
      getSecure(url, { ca, agent: false, maxVersion: 'TLSv1.1', minVersion: 'TLSv1' }, resolve).on(
        'error',
        resolve,
      )
    })
    expect(await old).toBeInstanceOf(Error)
    await expect(fetch(url.replace('https', 'http'))).rejects.toThrow()
    expect(reached).toBe(0)
  })

  test.each([
    ['a missing file', () => rmSync(join(folder, 'tls.key')), 'TLS_KEY_FILE: '],
    [
      'a key of another certificate',
      () => use('first', 'second'),
      'TLS_CERT_FILE and TLS_KEY_FILE: ',
    ],
  ])('does not start with %s', async (_, spoil, text) => {
    use('first')
    spoil()
    const { code, stderr } = await runCli(['serve'], { cwd: folder, env: secure() })
    expect([code, stderr]).toEqual([2, expect.stringContaining(text)])
  })
})

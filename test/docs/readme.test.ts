import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import { createKey, mint, type TestKey } from '../harness/issuer.ts'
import { freePort, ROOT } from '../harness/process.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'
import { type Block, blocksOf, patternOf, promiseAfter } from './blocks.ts'
import { openTerminal, type Terminal } from './terminal.ts'

const README = await readFile(join(ROOT, 'README.md'), 'utf8')
const blocks = blocksOf(README)
const named = (language: string) => blocks.filter((block) => block.language === language)

const GATEWAY_PORT = '8787'
const BOOKS_PORT = '9000'
const IDP = 'https://idp.example.com'
const UPSTASH_URL = 'https://example-12345.upstash.io'
const UPSTASH_TOKEN = 'AbCdEfGhIjKlMnOpQrStUvWxYz'
/** What commands say that make a promise in words. */
const TOLD: readonly (readonly [command: string, told: RegExp])[] = [
  ['portcullis revoke subject alice', /^\S+ +subject +alice +- +laptop stolen /m],
  ['portcullis limits override standard alice', /^\S+ +standard +alice +- +1000 /m],
  ['portcullis clients hash-secret', /^\[\{"id":"[\da-f-]{36}",.*"secretSha256":"[\w-]{43}"\}\]$/m],
]
/** An event is in the database some time after its request. */
const AUDIT_TRIES = 15

let terminal: Terminal
let redis: TestRedis
let provider: TestServer
let key: TestKey
let port: string

beforeAll(async () => {
  key = await createKey('idp')
  redis = await startTestRedis()
  provider = await startHttpServer((_request, response) => {
    response.writeHead(200, { 'Content-Type': 'application/json' })
    response.end(JSON.stringify({ keys: [key.publicJwk] }))
  })
  port = String(await freePort())
  terminal = await openTerminal(
    [
      [GATEWAY_PORT, port],
      [BOOKS_PORT, String(await freePort())],
      [IDP, provider.url],
      [UPSTASH_URL, redis.url],
      [UPSTASH_TOKEN, redis.token],
    ],
    {
      PORT: port,
      PORTCULLIS_URL: `http://127.0.0.1:${port}`,
      // What the README promises, it promises of a machine that has nothing else to do.
      REDIS_TIMEOUT_MS: '5000',
      CI: 'true',
      NO_COLOR: '1',
      WRANGLER_SEND_METRICS: 'false',
    },
  )
})

afterAll(async () => {
  await terminal?.close()
  await provider?.close()
  await redis?.close()
})

/** The statuses that a block promises in comments, and those that its requests got. */
function statuses(block: Block, output: string): readonly [promised: string[], got: string[]] {
  const promised = [...block.text.matchAll(/# (\d{3})$/gm)].map(([, status = '']) => status)
  const got = [...output.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status = '']) => status)
  return [promised, got]
}

/** The anchor that a heading has where Markdown is shown. */
const slugOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\w\s-]/g, '')
    .replaceAll(' ', '-')

async function writeFilesBefore(block: Block): Promise<void> {
  const previous = blocks[blocks.indexOf(block) - 1]
  if (previous?.language !== 'json') return
  const text = previous.text.replaceAll(IDP, provider.url)
  await writeFile(join(terminal.path, 'issuers.json'), text)
}

describe('the commands of the README, in a checkout of their own', () => {
  test('are there', () => {
    const commands = named('sh').map(({ text }) => text)
    expect(commands).toContain('npm ci && npm start')
    expect(commands).toContain('npm ci && npm test')
    expect(commands.length).toBeGreaterThan(15)
  })

  test.each(named('sh').map((block) => [block.line, block.text.split('\n')[0], block] as const))(
    'line %i: %s',
    async (_line, _first, block) => {
      await writeFilesBefore(block)
      const promise = promiseAfter(blocks, block)
      const { code, output } = await terminal.run(block.text)
      const fails = promise?.startsWith('portcullis:') === true
      expect(code ?? 0, output).toBe(fails ? 1 : 0)
      const [promised, got] = statuses(block, output)
      expect(got, output).toEqual(promised)
      if (promise !== undefined)
        expect(output).toMatch(patternOf(promise.replaceAll(GATEWAY_PORT, port)))
      if (block.text.includes('issuers.json')) await theProviderIsTrusted()
      if (block.text.includes('audit query --decision'))
        await itIsOnRecord(block, 'token_revoked:subject')
      if (block.text.includes('audit query --request-id'))
        await itIsOnRecord(block, 'token_missing')
      const [, told] = TOLD.find(([command]) => block.text.includes(command)) ?? []
      if (told !== undefined) expect(output).toMatch(told)
    },
  )

  async function theProviderIsTrusted(): Promise<void> {
    const claims = { iss: provider.url, aud: 'https://api.example.com' }
    const token = await mint(key, { claims, header: { typ: 'JWT' } })
    const answer = await fetch(`http://127.0.0.1:${port}/orders`, {
      headers: { Authorization: `Bearer ${token}` },
    })
    expect(answer.status).toBe(200)
  }

  async function itIsOnRecord(block: Block, reason: string): Promise<void> {
    let output = ''
    for (let tries = 0; tries < AUDIT_TRIES; tries++) {
      output = (await terminal.run(block.text)).output
      if (output.includes(reason)) break
    }
    expect(output).toContain(reason)
  }
})

describe('what else the README shows', () => {
  test('is in the example that it names', async () => {
    const source = await readFile(join(ROOT, 'examples/middleware/worker.ts'), 'utf8')
    for (const { text } of named('ts')) expect(source).toContain(text)
    expect(named('ts').length).toBe(1)
  })

  test('are links that lead somewhere', async () => {
    const targets = [...README.matchAll(/\]\(([^):]+)\)/g)].map(([, target = '']) => target)
    expect(targets.length).toBeGreaterThan(5)
    const anchors = new Set(
      [...README.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => `#${slugOf(heading)}`),
    )
    const leads = (target: string) =>
      target.startsWith('#') ? anchors.has(target) : existsSync(join(ROOT, target))
    expect(targets.filter((target) => !leads(target))).toEqual([])
  })

  test('are commands for an account that wrangler has', async () => {
    const commands = named('console').flatMap(({ text }) => text.split('\n'))
    const wrangler = commands.flatMap(
      (line) => /^npx wrangler ([a-z0-9]+(?: [a-z]+)?)/.exec(line)?.slice(1) ?? [],
    )
    expect(new Set(wrangler)).toEqual(
      new Set([
        ...['login', 'queues create', 'd1 create', 'secret put', 'd1 execute'],
        ...['r2 bucket', 'r2 object'],
      ]),
    )
    for (const command of new Set(wrangler)) {
      const { code, output } = await terminal.run(`npx wrangler ${command} --help`)
      expect(code).toBe(0)
      expect(output).toContain(`wrangler ${command}`)
    }
  })
})

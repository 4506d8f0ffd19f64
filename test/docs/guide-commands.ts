/**
 * The tests of the commands in the README and in the guides. Guides that assume a gateway of `npm start` share
 * one, each with a shell of its own; each other guide has a checkout of its own.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import { createKey, mint, type TestKey } from '../harness/issuer.ts'
import { freePort } from '../harness/process.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'
import { type Block, blocksOf, patternOf, promiseAfter } from './blocks.ts'
import { commandsOf, DRY_RUN, type Guide, readDocument } from './documents.ts'
import { openTerminal, type Proven, type Terminal } from './terminal.ts'

const GATEWAY_PORT = '8787'
const BOOKS_PORT = '9000'
/** The variables of the APIs of `examples/shop`, in the order of their ports. */
const SHOP_VARIABLES = ['ORDERS', 'CATALOG', 'CATALOG_NEXT', 'CUSTOMERS'].map(
  (name) => `ORIGIN_URL_${name}`,
)
const SHOP_POLICY = 'PORTCULLIS_CONFIG=examples/shop/policy.ts'
const IDP = 'https://idp.example.com'
const UPSTASH_URL = 'https://example-12345.upstash.io'
const UPSTASH_TOKEN = 'AbCdEfGhIjKlMnOpQrStUvWxYz'

/** Guides that assume a gateway of `npm start`, and what is run before their commands. */
const BEFORE: Partial<Record<Guide, readonly string[]>> = {
  'docs/tokens.md': [],
  'docs/relations.md': [],
  'docs/audit.md': [
    [
      'TOKEN=$(npm run -s token -- --subject alice --role reader)',
      'npx portcullis revoke subject alice',
      `curl -s http://127.0.0.1:${GATEWAY_PORT}/orders -H "Authorization: Bearer $TOKEN"`,
    ].join('\n'),
  ],
  'docs/abuse.md': [],
  'docs/authorization-server.md': [],
}

/** Output that a document promises in words. */
const PROMISED: readonly (readonly [command: string, output: RegExp])[] = [
  ['portcullis revoke subject alice', /^\S+ +subject +alice +.* laptop stolen /m],
  ['portcullis limits override standard alice', /^\S+ +standard +alice +- +- +platform +1000 /m],
  ['portcullis clients hash-secret', /^\[\{"id":"[\da-f-]{36}",.*"secretSha256":"[\w-]{43}"\}\]$/m],
  ['portcullis bans create address', /^value +203\.0\.113\.7$/m],
  ['portcullis audit verify', /^ok: /m],
]

/** Events that a query must find. An event reaches the database some time after its request. */
const ON_RECORD: readonly (readonly [guide: Guide, command: string, reason: string])[] = [
  ['docs/your-api.md', 'audit query --decision', 'token_rejected:aud'],
  ['docs/audit.md', 'audit query --decision', 'token_revoked:subject'],
  ['docs/audit.md', 'audit query --request-id', 'missing_token'],
  ['docs/api-keys.md', 'usage --key', 'total'],
]
const RECORDED = { timeout: 100_000, interval: 500 }

/** Returns the statuses that a block promises in comments, and the statuses of its requests. */
function statuses(block: Block, output: string): readonly [promised: string[], got: string[]] {
  const promised = [...block.text.matchAll(/# (\d{3})$/gm)].map(([, status = '']) => status)
  const got = [...output.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status = '']) => status)
  return [promised, got]
}

interface Opened {
  readonly terminal: Terminal
  /** The port of its gateway. */
  readonly port: string
}

async function succeeds(terminal: Terminal, command: string): Promise<void> {
  const { code, output } = await terminal.run(command)
  expect(code ?? 0, output).toBe(0)
}

/**
 * Defines a test for each command of each guide. Commands of one guide run in their order. `isNpxProven`: whether
 * the guides of another file prove that `npx portcullis` finds the program.
 */
export function testCommandsOf(guides: readonly Guide[], isNpxProven = false): void {
  let redis: TestRedis
  let provider: TestServer
  let key: TestKey
  const proven: Proven = { npx: isNpxProven, install: false, lockFile: false }
  let gateway: Promise<Opened> | undefined

  async function open(): Promise<Opened> {
    const port = String(await freePort())
    const shopPorts: string[] = []
    for (const _ of SHOP_VARIABLES) shopPorts.push(String(await freePort()))
    const settings = SHOP_VARIABLES.map(
      (name, at) => `${name}=http://127.0.0.1:${shopPorts[at]}`,
    ).join(' ')
    const terminal = await openTerminal(
      [
        [GATEWAY_PORT, port],
        [BOOKS_PORT, String(await freePort())],
        [IDP, provider.url],
        [UPSTASH_URL, redis.url],
        [UPSTASH_TOKEN, redis.token],
        // Their default ports may be in use.
        ['npx portcullis redis', 'npx portcullis redis --port 0'],
        ['node examples/shop/api.mjs', `node examples/shop/api.mjs ${shopPorts.join(' ')}`],
        // Only there: other commands would look for these APIs.
        [SHOP_POLICY, `${settings} ${SHOP_POLICY}`],
      ],
      {
        PORT: port,
        PORTCULLIS_URL: `http://127.0.0.1:${port}`,
        // The documents assume an otherwise idle machine.
        REDIS_TIMEOUT_MS: '5000',
        CI: 'true',
        NO_COLOR: '1',
        WRANGLER_SEND_METRICS: 'false',
      },
      proven,
    )
    return { terminal, port }
  }

  async function openWithGateway(): Promise<Opened> {
    const opened = await open()
    try {
      await succeeds(opened.terminal, 'npm start')
      return opened
    } catch (error) {
      await opened.terminal.close()
      throw error
    }
  }

  beforeAll(async () => {
    key = await createKey('idp')
    redis = await startTestRedis()
    provider = await startHttpServer((_request, response) => {
      response.writeHead(200, { 'Content-Type': 'application/json' })
      response.end(JSON.stringify({ keys: [key.publicJwk] }))
    })
  })

  afterAll(async () => {
    // If it did not start, the guides that need it have failed.
    const opened = await gateway?.catch(() => undefined)
    await opened?.terminal.close()
    await provider?.close()
    await redis?.close()
  })

  describe.each(guides)('the commands of %s', (guide) => {
    const blocks = blocksOf(readDocument(guide))
    let terminal: Terminal
    let port: string

    const before = BEFORE[guide]

    beforeAll(async () => {
      if (before !== undefined) gateway ??= openWithGateway()
      const opened = await (before === undefined ? open() : gateway)
      if (opened === undefined) throw new Error('no gateway was started')
      ;({ terminal, port } = opened)
      await terminal.forgetVariables()
      for (const command of before ?? []) await succeeds(terminal, command)
    })

    afterAll(async () => {
      if (before === undefined) await terminal?.close()
    })

    const commands = commandsOf(guide).filter(({ text }) => text !== DRY_RUN)

    test.each(commands.map(({ line, text }) => [line, text.split('\n')[0]] as const))(
      'line %i: %s',
      async (line) => {
        const block = blocks.find((one) => one.line === line)
        if (block === undefined) throw new Error(`line ${line}: no block found`)
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
        for (const [of, command, reason] of ON_RECORD)
          if (of === guide && block.text.includes(command)) await itIsOnRecord(block, reason)
        const [, pattern] = PROMISED.find(([command]) => block.text.includes(command)) ?? []
        if (pattern !== undefined) expect(output).toMatch(pattern)
      },
    )

    /** Writes a file that the document shows in the block before. */
    async function writeFilesBefore(block: Block): Promise<void> {
      const previous = blocks[blocks.indexOf(block) - 1]
      if (previous?.language !== 'json') return
      const text = previous.text.replaceAll(IDP, provider.url)
      await writeFile(join(terminal.path, 'issuers.json'), text)
    }

    async function theProviderIsTrusted(): Promise<void> {
      const statusFor = async (aud: string) => {
        const token = await mint(key, {
          claims: { iss: provider.url, aud },
          header: { typ: 'JWT' },
        })
        const headers = { Authorization: `Bearer ${token}` }
        return (await fetch(`http://127.0.0.1:${port}/orders`, { headers })).status
      }
      expect(await statusFor('https://api.example.com')).toBe(200)
      expect(await statusFor('https://other.example.com')).toBe(401)
    }

    async function itIsOnRecord(block: Block, reason: string): Promise<void> {
      const output = async () => (await terminal.run(block.text)).output
      await expect.poll(output, RECORDED).toContain(reason)
    }
  })
}

/** Runs every command of the README and of the guides, each document in a checkout of its own. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createProgram } from '../../cli/program.ts'
import { startHttpServer, type TestServer } from '../harness/http-server.ts'
import { createKey, mint, type TestKey } from '../harness/issuer.ts'
import { freePort } from '../harness/process.ts'
import { startTestRedis, type TestRedis } from '../harness/redis.ts'
import { type Block, blocksOf, outlineOf, patternOf, promiseAfter } from './blocks.ts'
import { DOCUMENTS, GUIDES, readDocument } from './documents.ts'
import { openTerminal, type Terminal } from './terminal.ts'

type Guide = (typeof GUIDES)[number]

const GATEWAY_PORT = '8787'
const BOOKS_PORT = '9000'
const IDP = 'https://idp.example.com'
const UPSTASH_URL = 'https://example-12345.upstash.io'
const UPSTASH_TOKEN = 'AbCdEfGhIjKlMnOpQrStUvWxYz'

/** Run before a guide that assumes a gateway. Commands before `npm start` are not possible here. */
const BEFORE: Partial<Record<Guide, readonly string[]>> = {
  'docs/tokens.md': ['npm start'],
  'docs/relations.md': ['npm start'],
  'docs/audit.md': [
    'npm start',
    [
      'TOKEN=$(npm run -s token -- --sub alice --role reader)',
      'npx portcullis revoke subject alice',
      `curl -s http://127.0.0.1:${GATEWAY_PORT}/orders -H "Authorization: Bearer $TOKEN"`,
    ].join('\n'),
  ],
  'docs/abuse.md': ['npm start'],
}

/** Output that a document promises in words. */
const PROMISED: readonly (readonly [command: string, output: RegExp])[] = [
  ['portcullis revoke subject alice', /^\S+ +subject +alice +- +laptop stolen /m],
  ['portcullis limits override standard alice', /^\S+ +standard +alice +- +1000 /m],
  ['portcullis clients hash-secret', /^\[\{"id":"[\da-f-]{36}",.*"secretSha256":"[\w-]{43}"\}\]$/m],
  ['portcullis bans create address', /^value +203\.0\.113\.7$/m],
  ['portcullis audit verify', /^ok: /m],
]

/** Events that a query must find. An event reaches the database some time after its request. */
const ON_RECORD: readonly (readonly [guide: Guide, command: string, reason: string])[] = [
  ['docs/your-api.md', 'audit query --decision', 'token_rejected:aud'],
  ['docs/audit.md', 'audit query --decision', 'token_revoked:subject'],
  ['docs/audit.md', 'audit query --request-id', 'missing_token'],
]
const AUDIT_TRIES = 15

let redis: TestRedis
let provider: TestServer
let key: TestKey

beforeAll(async () => {
  key = await createKey('idp')
  redis = await startTestRedis()
  provider = await startHttpServer((_request, response) => {
    response.writeHead(200, { 'Content-Type': 'application/json' })
    response.end(JSON.stringify({ keys: [key.publicJwk] }))
  })
})

afterAll(async () => {
  await provider?.close()
  await redis?.close()
})

const commandsOf = (document: string): readonly Block[] =>
  blocksOf(readDocument(document)).filter(({ language }) => language === 'sh')

/** Returns the statuses that a block promises in comments, and the statuses of its requests. */
function statuses(block: Block, output: string): readonly [promised: string[], got: string[]] {
  const promised = [...block.text.matchAll(/# (\d{3})$/gm)].map(([, status = '']) => status)
  const got = [...output.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status = '']) => status)
  return [promised, got]
}

describe('documents', () => {
  test('with commands for a user are all in the list of guides', () => {
    const others = /^(CONTRIBUTING|bench\/README|docs\/index)\.md$|^docs\/decisions\//
    const withCommands = DOCUMENTS.filter((path) => commandsOf(path).length > 0)
    expect(withCommands.filter((path) => !others.test(path)).sort()).toEqual([...GUIDES].sort())
  })

  test('of the first page of the site have only commands of the README', () => {
    const linesOf = (path: string) =>
      commandsOf(path).flatMap(({ text }) => text.replaceAll(/ +/g, ' ').split('\n'))
    const readme = linesOf('README.md')
    const first = linesOf('docs/index.md')
    expect(first.length).toBeGreaterThan(0)
    for (const line of first) expect(readme).toContain(line)
  })

  test('contain the commands that they must contain', () => {
    const first = commandsOf('README.md').map(({ text }) => text)
    expect(first).toContain('npm ci && npm start')
    expect(first).toContain('npm ci && npm test')
    expect(GUIDES.flatMap(commandsOf).length).toBeGreaterThan(25)
  })
})

describe.each(GUIDES)('the commands of %s', (guide) => {
  const blocks = blocksOf(readDocument(guide))
  let terminal: Terminal
  let port: string

  beforeAll(async () => {
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
        // The documents assume an otherwise idle machine.
        REDIS_TIMEOUT_MS: '5000',
        CI: 'true',
        NO_COLOR: '1',
        WRANGLER_SEND_METRICS: 'false',
      },
    )
    for (const command of BEFORE[guide] ?? []) {
      const { code, output } = await terminal.run(command)
      expect(code ?? 0, output).toBe(0)
    }
  })

  afterAll(() => terminal?.close())

  test.each(commandsOf(guide).map(({ line, text }) => [line, text.split('\n')[0]] as const))(
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
      const token = await mint(key, { claims: { iss: provider.url, aud }, header: { typ: 'JWT' } })
      const headers = { Authorization: `Bearer ${token}` }
      return (await fetch(`http://127.0.0.1:${port}/orders`, { headers })).status
    }
    expect(await statusFor('https://api.example.com')).toBe(200)
    expect(await statusFor('https://other.example.com')).toBe(401)
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

describe('commands that are not run, because they need an account or an argument of yours,', () => {
  const consoles = DOCUMENTS.flatMap((path) => blocksOf(readDocument(path)))
    .filter(({ language }) => language === 'console')
    .flatMap(({ text }) => text.replaceAll('\\\n', ' ').split('\n'))
  let terminal: Terminal

  beforeAll(async () => {
    terminal = await openTerminal([], { CI: 'true', NO_COLOR: '1', WRANGLER_SEND_METRICS: 'false' })
  })

  afterAll(() => terminal?.close())

  test('exist in wrangler', async () => {
    const wrangler = consoles.flatMap(
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

  test('exist in package.json', () => {
    const { scripts } = JSON.parse(readDocument('package.json')) as { readonly scripts: object }
    const named = GUIDES.flatMap((guide) =>
      [...readDocument(guide).matchAll(/\bnpm run (?:-s )?([\w:-]+)/g)].map(
        ([, name = '']) => name,
      ),
    )
    expect(named).toContain('keys')
    expect([...new Set(named)].filter((name) => !(name in scripts))).toEqual([])
  })

  test('exist in the command line, with these options', () => {
    const inline = GUIDES.flatMap((guide) =>
      [...outlineOf(readDocument(guide)).prose.matchAll(/`npx (portcullis [^`]+)`/g)].map(
        ([, command = '']) => command,
      ),
    )
    const lines = [
      ...inline,
      ...consoles.flatMap((line) => /^npx (portcullis .*)/.exec(line)?.slice(1) ?? []),
    ]
    expect(lines.length).toBeGreaterThan(8)
    for (const line of lines) {
      const { words, options } = commandOf(line)
      expect(words.length, line).toBeGreaterThan(0)
      for (const [option] of line.matchAll(/(?<= )--[a-z-]+/g))
        expect(options, line).toContain(option)
    }
  })
})

/**
 * Returns the command that a line names, and the long options of that command. A word that is not a
 * subcommand is an argument.
 */
function commandOf(line: string): { words: readonly string[]; options: readonly string[] } {
  let command = createProgram()
  const words: string[] = []
  for (const word of line.split(' ').slice(1)) {
    const next = command.commands.find((candidate) => candidate.name() === word)
    if (next === undefined) break
    command = next
    words.push(word)
  }
  expect(command.commands, `${line}: not a complete command`).toEqual([])
  return { words, options: command.options.flatMap(({ long }) => long ?? []) }
}

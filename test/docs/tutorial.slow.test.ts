/**
 * The tutorial, from an empty folder with the built package: its files are written, and its commands run, in their
 * order. Its packages are those of this checkout, and its ports are free ones.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { published } from '../../dev/package/manifest.ts'
import { builtPackage } from '../dev/start/build.ts'
import { createUserAgent } from '../features/sign-in/user-agent.ts'
import { freePort, ROOT } from '../harness/process.ts'
import { type Block, blocksOf } from './blocks.ts'
import { readDocument } from './documents.ts'

const PORTS = ['3000', '4000', '8787']
const PROGRAM = 'node node_modules/portcullis/dist/portcullis.mjs'
/** Commands that run until they are stopped, and the output or the file that says that they are ready. */
const SERVERS: readonly (readonly [command: string, ready: RegExp, file?: string])[] = [
  ['node api.mjs', /listens on/],
  ['node provider.mjs', /listens on/],
  ['portcullis.mjs redis', /^UPSTASH_REDIS_REST_TOKEN=/m, 'redis.env'],
  ['portcullis.mjs serve', /Portcullis is ready/],
]

const running = new Map<string, ChildProcess>()
const ports = new Map<string, string>()
let folder: string

/** The text of a block, for this machine. */
function here(text: string): string {
  let changed = text
    .replaceAll('npx portcullis', PROGRAM)
    .replace(/mjs redis/, 'mjs redis --port 0')
  for (const [documented, free] of ports)
    changed = changed.replaceAll(new RegExp(`\\b${documented}\\b`, 'g'), free)
  return changed.replace(/mjs serve/, `mjs serve --port ${ports.get('8787')}`)
}

function shell(script: string): { child: ChildProcess; output: () => string } {
  const path = [join(ROOT, 'node_modules/node/bin'), process.env.PATH, join(folder, 'bin')]
  const env = { ...process.env, PATH: path.join(delimiter), CI: 'true', NO_COLOR: '1' }
  const child = spawn('sh', ['-euc', script], { cwd: folder, env })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  return { child, output: () => output }
}

async function stop(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  await ended
}

async function run({ text }: Block): Promise<string> {
  const script = here(text)
  const last = script.split('\n').at(-1) ?? ''
  const [name, ready, file] = SERVERS.find(([command]) => last.includes(command)) ?? []
  if (name === undefined || ready === undefined) {
    const { child, output } = shell(script)
    const [code] = await once(child, 'close')
    // The tutorial explains a refusal.
    expect(code, output()).toBe(text.includes('explain POST') ? 1 : 0)
    return output()
  }
  await stop(running.get(name))
  const { child, output } = shell(script.replace(last, `exec ${last}`))
  running.set(name, child)
  const shown = async () =>
    file === undefined ? output() : readFile(join(folder, file), 'utf8').catch(() => '')
  await expect.poll(async () => (await shown()) + (child.exitCode ?? '')).toMatch(ready)
  return output()
}

const statusesIn = (text: string, pattern: RegExp): readonly string[] =>
  [...text.matchAll(pattern)].map(([, status = '']) => status)

/** The names of the files that the text before a block of code says to write. */
const NAMED = /`([\w.-]+\.(?:mjs|ts))`/g
const document = readDocument('docs/tutorial.md')
const lines = document.split('\n')
const blocks = blocksOf(document).filter(({ language }) => /^(?:sh|js|ts)$/.test(language))

function fileOf({ line }: Block): string {
  const before = lines.slice(0, line - 1).join('\n')
  return [...before.matchAll(NAMED)].at(-1)?.[1] ?? ''
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portcullis-tutorial-'))
  for (const port of PORTS) ports.set(port, String(await freePort()))
  const modules = join(folder, 'node_modules')
  await mkdir(join(modules, 'portcullis'), { recursive: true })
  await mkdir(join(folder, 'bin'))
  for (const name of await readdir(join(ROOT, 'node_modules')))
    if (!name.startsWith('.') && name !== 'portcullis')
      await symlink(join(ROOT, 'node_modules', name), join(modules, name))
  const manifest = published(readDocument('package.json'))
  await writeFile(join(modules, 'portcullis/package.json'), manifest)
  await symlink(join(ROOT, 'migrations'), join(modules, 'portcullis/migrations'))
  await cp(await builtPackage(), join(modules, 'portcullis/dist'), { recursive: true })
  const curl = `#!/bin/sh\nexec node ${join(import.meta.dirname, 'curl.mjs')} "$@"\n`
  await writeFile(join(folder, 'bin/curl'), curl, { mode: 0o755 })
  await writeFile(
    join(folder, 'package.json'),
    '{"type":"module","dependencies":{"portcullis":"*"}}',
  )
})

afterAll(async () => {
  await Promise.all([...running.values()].map(stop))
  await rm(folder, { recursive: true, force: true })
})

describe('the tutorial', () => {
  test('runs from an empty folder to a revocation, with a login on the way', async () => {
    for (const block of blocks) {
      if (block.language !== 'sh') {
        await writeFile(join(folder, fileOf(block)), `${here(block.text)}\n`)
        continue
      }
      const output = await run(block)
      const got = statusesIn(output, /HTTP\/1\.1 (\d{3}) /g)
      expect(got, output).toEqual(statusesIn(block.text, /# (\d{3})$/gm))
      if (block.text.includes('audit query')) expect(output).toContain('token_revoked:subject')
      if (block.section.startsWith('7.') && block.text.includes('serve'))
        await signInAndOutAs('carol')
    }
    expect(running.size).toBe(SERVERS.length)
  })
})

/** Does in a browser what the tutorial says: a login, and a sign-out at both. */
async function signInAndOutAs(name: string): Promise<void> {
  const browser = createUserAgent()
  const gateway = `http://127.0.0.1:${ports.get('8787')}`
  const page = `${gateway}/notes`
  let shown = await browser.visit(page)
  for (const form of [{ prompt: 'login', login: name, password: 'any' }, { prompt: 'consent' }]) {
    const [, action = ''] = /action="([^"]+)"/.exec(shown.text) ?? []
    shown = await browser.visit(action, undefined, {
      method: 'POST',
      body: new URLSearchParams(form).toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    })
  }
  expect(shown.url).toBe(page)
  expect(JSON.parse(shown.text)).toMatchObject({ caller: name })
  const asked = await browser.visit(`${gateway}/oauth/sign-out`, undefined, {
    method: 'POST',
    headers: { origin: gateway, 'sec-fetch-site': 'same-origin' },
  })
  const [, action = ''] = /action="([^"]+)"/.exec(asked.text) ?? []
  const [, xsrf = ''] = /name="xsrf" value="([^"]+)"/.exec(asked.text) ?? []
  const ended = await browser.visit(action, undefined, {
    method: 'POST',
    body: new URLSearchParams({ xsrf, logout: 'yes' }).toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  })
  expect(ended.url).toBe(`${gateway}/oauth/signed-out`)
}

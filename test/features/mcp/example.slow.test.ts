/** Runs the commands of examples/mcp/README.md, on free ports. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createKey } from '../../harness/issuer.ts'
import { freePort, ROOT } from '../../harness/process.ts'

const readme = readFileSync(`${ROOT}/examples/mcp/README.md`, 'utf8')
const blocks = [...readme.matchAll(/^ {3}```console\n(.*?)^ {3}```$/gms)].map(([, text = '']) =>
  text.replaceAll(/^ {3}/gm, ''),
)

const started: ChildProcess[] = []
let environment: NodeJS.ProcessEnv
let onFreePorts: (text: string) => string

/** Starts a command in a process group of its own, and waits for a line of its output. */
async function start(command: string, ready: RegExp, port: number): Promise<void> {
  const child = spawn('bash', ['-c', onFreePorts(command)], {
    cwd: ROOT,
    detached: true,
    env: { ...environment, PORT: String(port) },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  started.push(child)
  let output = ''
  await new Promise<void>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (chunk) => {
        output += chunk
        if (ready.test(output)) resolve()
      })
    child.once('exit', () => reject(new Error(output)))
  })
}

describe('examples/mcp/README.md', () => {
  beforeAll(async () => {
    const [server, gateway] = [await freePort(), await freePort()]
    const { privateJwk } = await createKey('example')
    onFreePorts = (text) =>
      text.replaceAll(':3000', `:${server}`).replaceAll(':8787', `:${gateway}`)
    environment = {
      ...process.env,
      PATH: `${ROOT}/node_modules/.bin:${process.env.PATH}`,
      PUBLIC_URL: `http://127.0.0.1:${gateway}`,
      SIGNING_KEYS: JSON.stringify({ keys: [privateJwk] }),
      REDIS_URL: '',
    }
    await start(blocks[0] ?? '', /MCP server on/, server)
    await start(blocks[1] ?? '', /is ready/, gateway)
  })
  afterAll(() => {
    for (const { pid } of started) if (pid !== undefined) process.kill(-pid)
  })

  test('a reader sees and calls only its tools', async () => {
    const { stdout } = await promisify(execFile)('bash', ['-c', onFreePorts(blocks[2] ?? '')], {
      cwd: ROOT,
      env: environment,
    })
    const [listed, found, refused] = stdout
      .replaceAll('}{', '}\n{')
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(listed.result.tools.map(({ name }: { name: string }) => name)).toEqual([
      'list_shelves',
      'search_books',
    ])
    expect(found.result.content).toEqual([{ type: 'text', text: 'Moby Dick' }])
    expect(refused).toMatchObject({ error: { data: { code: 'insufficient_permission' } } })
  })
})

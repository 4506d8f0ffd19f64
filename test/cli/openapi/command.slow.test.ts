import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { ROOT } from '../../harness/process.ts'
import { runCli } from '../command-line.ts'

const YAML = `
openapi: 3.1.0
info: { title: Orders, version: '1' }
paths:
  /orders:
    get: { security: [{ oauth: [ 'orders:read' ] }] }
    post:
      security: [{ oauth: [ 'orders:write' ] }]
      requestBody: { required: true, content: { application/json: { schema: { $ref: 'parts/order.yaml#/Order' } } } }
`
const ORDER = 'Order: { type: object, required: [ item ], properties: { item: { type: string } } }'

let folder = ''
const file = (name: string) => join(folder, name)
const read = (name: string) => readFileSync(file(name), 'utf8')
const write = (name: string, text: string) => writeFileSync(file(name), text)
const run = (...args: readonly string[]) => runCli(['openapi', 'import', ...args], { cwd: folder })
const importAgain = (...args: readonly string[]) =>
  run('openapi.yaml', '--out', 'routes.generated.ts', ...args)

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'openapi-cli-'))
  mkdirSync(file('parts'))
  write('openapi.yaml', YAML)
  write('parts/order.yaml', ORDER)
  return () => rmSync(folder, { recursive: true })
})

describe('openapi import', () => {
  test('writes a module from YAML with a reference to a file, and leaves no other file', async () => {
    const { code, stdout } = await importAgain()
    expect(code).toBe(0)
    expect(stdout).toBe(
      '2 operations: 2 routes, 2 schemas, 0 not mapped, 0 approximated, 0 assumed.\n',
    )
    expect(read('routes.generated.ts')).toContain(
      'export const Order = z.looseObject({ item: z.string() })',
    )
    expect(readdirSync(folder).sort()).toEqual(['openapi.yaml', 'parts', 'routes.generated.ts'])
  })

  test('a second import shows what changed', async () => {
    await importAgain()
    write('openapi.yaml', YAML.replace('orders:write', 'orders:create').replace('get:', 'put:'))
    write('parts/order.yaml', ORDER.replace('string', 'integer'))
    const { code, stderr } = await importAgain()
    expect(code).toBe(0)
    const lines = stderr.split('\n').filter((line) => /^[-+~] /.test(line))
    expect(lines).toEqual(['+ PUT /orders', '- GET /orders', '~ POST /orders', '~ schema Order'])
  })

  test('--check writes nothing, and fails until the module is current', async () => {
    expect((await importAgain('--check')).code).toBe(1)
    expect(readdirSync(folder)).not.toContain('routes.generated.ts')
    await importAgain()
    expect((await importAgain('--check')).code).toBe(0)
    write('parts/order.yaml', ORDER.replace('string', 'integer'))
    const before = read('routes.generated.ts')
    const { code, stderr } = await importAgain('--check')
    expect(code).toBe(1)
    expect(stderr).toContain('~ schema Order')
    expect(stderr).toContain('not_current')
    expect(read('routes.generated.ts')).toBe(before)
  })

  test('does not replace a module that was edited, unless --force', async () => {
    await importAgain()
    write('routes.generated.ts', read('routes.generated.ts').replace("'orders:read'", "'a:b'"))
    const { code, stderr } = await importAgain()
    expect(code).toBe(2)
    expect(stderr).toMatch(/was edited; move the changes to the policy/)
    expect(read('routes.generated.ts')).toContain("'a:b'")
    expect((await importAgain('--force')).code).toBe(0)
    expect(read('routes.generated.ts')).not.toContain("'a:b'")
  })

  test('--strict fails and writes nothing if a part is not mapped; --json lists every note', async () => {
    write('openapi.yaml', `${YAML}    trace: {}\n`)
    const strict = await importAgain('--strict', '--json')
    expect(strict.code).toBe(1)
    expect(readdirSync(folder)).not.toContain('routes.generated.ts')
    expect(JSON.parse(strict.stdout)).toMatchObject({
      operations: 3,
      routes: 2,
      written: false,
      notes: [
        { kind: 'unmapped', place: 'TRACE /orders' },
        { kind: 'ignored', place: 'info' },
      ],
    })
    expect(JSON.parse(strict.stderr)).toMatchObject({ error: { code: 'not_mapped' } })
    expect((await importAgain()).code).toBe(0)
    expect(read('routes.generated.ts')).toContain('//   TRACE /orders: ')
  })

  test('the module in examples/openapi is current', async () => {
    const args = ['openapi', 'import', 'openapi.json', '--out', 'routes.generated.ts', '--check']
    const { code, stderr } = await runCli(args, { cwd: join(ROOT, 'examples', 'openapi') })
    expect({ code, stderr }).toEqual({ code: 0, stderr: 'without effect on requests: info\n' })
  })

  test.each([
    ['a missing file', undefined, /openapi\.yaml cannot be read \(ENOENT\)/],
    ['text that is no YAML', 'a: [', /openapi\.yaml: is neither JSON nor YAML: line 1: /],
    ['Markdown', '# Orders\n\n- a: b\n* c\n', /neither JSON nor YAML: line \d+: .+; name a file/],
    [
      'Markdown without a list',
      '# Orders\n\nA text.\n',
      /it is not an object; name a file or a URL/,
    ],
    ['another document', 'a: 1', /has no field openapi/],
    ['Swagger 2.0', "swagger: '2.0'", /is Swagger 2\.0; convert it/],
    ['a later version', 'openapi: 4.0.0', /only 3\.0, 3\.1 and 3\.2 are supported/],
  ])('refuses %s', async (_, text, message) => {
    if (text === undefined) rmSync(file('openapi.yaml'))
    else write('openapi.yaml', text)
    const { code, stdout, stderr } = await importAgain()
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(message)
    expect(readdirSync(folder)).not.toContain('routes.generated.ts')
  })

  test.each(['my orders', '100%', 'a%20b', 'orders #1?', '\u00fc'])(
    'reads a document and a reference in a folder named %s',
    async (name) => {
      mkdirSync(file(`${name}/parts`), { recursive: true })
      write(`${name}/open api.yaml`, YAML.replace('parts/order', 'parts/the%20order'))
      write(`${name}/parts/the order.yaml`, ORDER)
      const { code, stdout } = await run(`${name}/open api.yaml`, '--out', 'routes.generated.ts')
      expect({ code, stdout }).toEqual({
        code: 0,
        stdout: '2 operations: 2 routes, 2 schemas, 0 not mapped, 0 approximated, 0 assumed.\n',
      })
    },
  )

  test('a reference without a target is listed, and the rest is imported', async () => {
    rmSync(file('parts/order.yaml'))
    const { code, stderr } = await importAgain()
    expect(code).toBe(0)
    expect(stderr).toContain('parts/order.yaml#/Order cannot be resolved')
  })
})

describe('openapi import from a URL', () => {
  const requests: string[] = []
  const server = createServer((request, response) => {
    requests.push(request.url ?? '')
    const found = { '/openapi.yaml': YAML, '/parts/order.yaml': ORDER }[request.url ?? '']
    response.writeHead(found === undefined ? 404 : 200).end(found)
  })
  let origin = ''
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    return () => server.close()
  })
  afterAll(() => void server.closeAllConnections())

  test('references to URLs are followed only with --remote-refs', async () => {
    const source = `${origin}/openapi.yaml`
    const closed = await run(source, '--out', 'a.ts')
    expect(closed.code).toBe(0)
    expect(closed.stderr).toContain('cannot be resolved')
    expect(requests).toEqual(['/openapi.yaml'])
    const open = await run(source, '--out', 'b.ts', '--remote-refs')
    expect(open.code).toBe(0)
    expect(read('b.ts')).toContain('export const Order = ')
  })

  test('a URL that does not answer with the document is exit code 3', async () => {
    const { code, stderr } = await run(`${origin}/missing.yaml`, '--out', 'a.ts')
    expect(code).toBe(3)
    expect(stderr).toMatch(/document_unavailable: .*status 404/)
  })
})

/** `portcullis policy` as a process: exit codes and outputs. */
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ROOT } from '../harness/process.ts'
import { builtPackage } from '../start/build.ts'
import { runCli } from './command-line.ts'

const folder = mkdtempSync(join(tmpdir(), 'portcullis-policy-'))

/** A project with the built package, as `npm install` leaves it. */
beforeAll(async () => {
  const installed = join(folder, 'node_modules/portcullis')
  await mkdir(installed, { recursive: true })
  symlinkSync(await builtPackage(), join(installed, 'dist'))
  symlinkSync(join(ROOT, 'package.json'), join(installed, 'package.json'))
  for (const name of ['hono', 'zod', 'jose', 'ipaddr.js', 'lru-cache', 'uuid'])
    symlinkSync(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name))
  writeFileSync(
    join(folder, 'package.json'),
    JSON.stringify({ type: 'module', dependencies: { portcullis: '*' } }),
  )
})
afterAll(() => rmSync(folder, { recursive: true }))

const POLICY = `import { definePolicy } from 'portcullis'

export default definePolicy({
  roles: { reader: ['orders:read'], admin: ['orders:*'] },
  limits: { standard: '10/min' },
  routes: [
    { method: 'GET', path: '/orders', permission: 'orders:read', limits: ['standard'] },
    { method: 'DELETE', path: '/orders/:id', permission: 'orders:delete', maxBodyBytes: 0 },
  ],
})
`

function write(name: string, text: string): string {
  writeFileSync(join(folder, name), text)
  return name
}
const run = (...args: string[]) => runCli(['policy', ...args], { cwd: folder })

describe('policy check', () => {
  test('lists every mistake with its place and a suggestion, without colors, and exits with 1', async () => {
    const text = POLICY.replace("['standard']", "['standards']").replace(
      'maxBodyBytes: 0',
      'dpopp: 1',
    )
    const { code, stdout } = await run('check', write('wrong.ts', text))
    expect(code).toBe(1)
    expect(stdout).toBe(
      `wrong.ts:8:5 error invalid-policy
    routes[1]: Unrecognized key: "dpopp"
    did you mean "dpop"?
wrong.ts:7:66 error invalid-policy
    GET /orders: unknown limit standards
    did you mean "standard"?
wrong.ts: 2 errors, 0 warnings, 0 info, 0 silenced
`,
    )
  })

  test('exits with 0 for warnings, with 1 for more than --max-warnings, and with 0 if they are silenced', async () => {
    write('portcullis.config.ts', POLICY)
    const { code, stdout } = await run('check')
    expect([code, stdout]).toEqual([
      0,
      expect.stringContaining('portcullis.config.ts:8:5 warning unlimited-route'),
    ])
    expect((await run('check', '--max-warnings', '0')).code).toBe(1)
    expect(await run('check', '--max-warnings', '0', '--ignore', 'unlimited-route')).toMatchObject({
      code: 0,
      stdout: 'portcullis.config.ts: 0 errors, 0 warnings, 0 info, 1 silenced\n',
    })
    const comment = '// portcullis-ignore unlimited-route: few callers may delete'
    const silent = POLICY.replace("    { method: 'DELETE'", `    ${comment}\n$&`)
    expect((await run('check', write('silent.ts', silent), '--max-warnings', '0')).code).toBe(0)
  })

  test('prints JSON and SARIF with the same findings', async () => {
    const json = JSON.parse((await run('check', '--json')).stdout)
    const place = { file: 'portcullis.config.ts', line: 8, column: 5, isExact: true }
    expect(json).toMatchObject({ ok: true, findings: [{ rule: 'unlimited-route', place }] })
    const sarif = JSON.parse((await run('check', '--sarif')).stdout)
    expect(sarif.runs[0].results).toMatchObject([{ ruleId: 'unlimited-route', level: 'warning' }])
  })

  test.each([
    [['absent.ts'], 'there is no file'],
    [['--ignore', 'no-such-rule'], 'unknown rule no-such-rule'],
    [['--max-warnings', 'x'], 'It must be a whole number'],
  ])('%j is a wrong usage', async (args, text) => {
    expect(await run('check', ...args)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(text),
    })
  })

  test('a file that cannot be loaded is reported with its name', async () => {
    const { code, stderr } = await run('check', write('broken.ts', 'export default {'))
    expect([code, stderr]).toEqual([2, expect.stringContaining('broken.ts')])
  })
})

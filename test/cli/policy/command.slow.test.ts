/** `portcullis policy` as a process: exit codes and outputs. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { builtPackage } from '../../dev/start/build.ts'
import { describeInLong, testInLong } from '../../harness/long.ts'
import { ROOT } from '../../harness/process.ts'
import { runHere } from '../command-here.ts'
import { runCli } from '../command-line.ts'
import { closeStubGateways, startStubGateway } from '../stub-gateway.ts'

const folder = mkdtempSync(join(tmpdir(), 'portcullis-policy-'))

/** A project with the built package, as `npm install` leaves it. */
beforeAll(async () => {
  const installed = join(folder, 'node_modules/portcullis')
  await mkdir(installed, { recursive: true })
  await mkdir(temporary)
  symlinkSync(await builtPackage(), join(installed, 'dist'))
  symlinkSync(join(ROOT, 'package.json'), join(installed, 'package.json'))
  for (const name of ['hono', 'zod', 'jose', 'ipaddr.js', 'uuid'])
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
const temporary = join(folder, 'tmp')
const environment = { cwd: folder, env: { TMPDIR: temporary } }
/** Runs a command in this process, which loads a file once: a file has one text in all tests with it. */
const run = (...args: string[]) => runHere(['policy', ...args], environment)
const shell = (...args: string[]) => runCli(['policy', ...args], environment)

describe('policy check', () => {
  test('lists every mistake with its place and a suggestion, without colors, and exits with 1', async () => {
    const text = POLICY.replace("['standard']", "['standards']").replace(
      'maxBodyBytes: 0',
      'dpopp: 1',
    )
    const { code, stdout } = await shell('check', write('wrong.ts', text))
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

  test('refuses issuers in the policy beside ISSUERS, as the start does', async () => {
    const issuers = "[{ issuer: 'https://idp.example.com', audience: 'api' }]"
    const file = write('both.ts', POLICY.replace('  roles:', `  issuers: ${issuers},\n  roles:`))
    const check = (env: Record<string, string>) =>
      runHere(['policy', 'check', file], { cwd: folder, env: { TMPDIR: temporary, ...env } })
    expect((await check({})).code).toBe(0)
    expect(await check({ ISSUERS: '[]' })).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(
        /^both\.ts:4:\d+ error .*\n.*ISSUERS is set, and the policy has issuers too/,
      ),
    })
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

  testInLong('mistakes are data in JSON, and their codes are the rules of SARIF', async () => {
    const file = write('data.ts', POLICY.replace("['standard']", "['standards']"))
    const json = JSON.parse((await run('check', file, '--json')).stdout)
    expect(json.findings).toMatchObject([
      {
        rule: 'invalid-policy',
        code: 'unknown_limit',
        path: ['routes', 0, 'limits'],
        message: 'GET /orders: unknown limit standards',
        given: 'standards',
        known: ['standard'],
        route: { method: 'GET', path: '/orders' },
        suggestion: 'did you mean "standard"?',
      },
    ])
    const sarif = JSON.parse((await run('check', file, '--sarif')).stdout)
    const [{ results, tool }] = sarif.runs
    expect(results).toMatchObject([{ ruleId: 'unknown_limit', level: 'error' }])
    expect(tool.driver.rules[results[0].ruleIndex]).toMatchObject({ id: 'unknown_limit' })
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

describe('policy test', () => {
  const table = (...rows: string[]) =>
    `import policy from './portcullis.config.ts'\nexport default {\n  policy,\n  rows: [\n${rows.join('\n')}\n  ],\n}\n`
  const reader = "{ sub: 'alice', roles: ['reader'] }"
  const asExpected = [
    "{ request: 'GET /orders', expect: 'missing_token' },",
    `{ request: 'GET /orders', as: ${reader}, expect: 'allowed' },`,
  ]

  beforeAll(async () => {
    write('portcullis.config.ts', POLICY)
    await mkdir(join(folder, 'tests/node_modules'), { recursive: true })
    write('tests/node_modules/foreign.policy-test.ts', 'throw new Error()')
    write(
      'tests/orders.policy-test.ts',
      table(...asExpected).replace('./portcullis', '../portcullis'),
    )
  })
  const wrong = () =>
    write(
      'wrong.policy-test.ts',
      table(
        ...asExpected,
        `{ name: 'no deletes', request: 'DELETE /orders/1', as: ${reader}, expect: 'allowed' },`,
        `{ request: 'GET /orders', as: ${reader}, expect: 403 },`,
      ),
    )

  test('finds the tables of a folder, runs them without a test runner, and reports the coverage', async () => {
    const { code, stdout, stderr } = await shell('test', 'tests')
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: `2 rows, 0 failed, in 1 file
1 of 2 routes tested (50 %); not tested: DELETE /orders/:id
1 of 2 roles tested (50 %); not tested: admin
`,
      stderr: 'tests/orders.policy-test.ts: 2 rows, 0 failed\n',
    })
  })

  test('prints the place of each other decision, what was expected, what happened and why', async () => {
    const { code, stdout } = await run('test', wrong())
    expect(code).toBe(1)
    expect(stdout).toContain(
      `wrong.policy-test.ts:7:1 failed row 3 (no deletes), DELETE /orders/1 as {"sub":"alice","roles":["reader"]}
    expected allowed, got insufficient_permission (403, permission_missing:orders:delete)
    authorize: the caller does not have the permission orders:delete; it is of admin
wrong.policy-test.ts:8:1 failed row 4, GET /orders as {"sub":"alice","roles":["reader"]}
    expected 403, got allowed (200)
    authorize: reader has the permission orders:read
4 rows, 2 failed, in 1 file
`,
    )
  })

  testInLong(
    'prints JSON with each stage of a failure, and adds up the coverage of all files',
    async () => {
      const { code, stdout } = await run('test', 'tests', wrong(), '--json')
      expect(code).toBe(1)
      const { failures, ...answer } = JSON.parse(stdout)
      expect(failures).toHaveLength(2)
      expect(failures[0]).toMatchObject({
        row: 3,
        name: 'no deletes',
        expected: 'allowed',
        decision: { allowed: false, status: 403, route: '/orders/:id' },
        place: { file: 'wrong.policy-test.ts', line: 7 },
      })
      expect(failures[0].stages.at(-1)).toMatchObject({ stage: 'authorize', outcome: 'refused' })
      expect(answer).toMatchObject({
        ok: false,
        files: [
          { file: 'tests/orders.policy-test.ts', rows: 2, failed: 0 },
          { file: 'wrong.policy-test.ts', rows: 4, failed: 2 },
        ],
        coverage: {
          routes: { total: 2, tested: 2, percent: 100, untested: [] },
          roles: { total: 2, tested: 1, percent: 50, untested: ['admin'] },
          counts: { routes: [{ route: 'GET /orders', allowed: 3, refused: 2 }, {}] },
        },
      })
    },
  )

  testInLong(
    'exits with 1 below --min-coverage only, and lists the rows of each route with --coverage',
    async () => {
      const { code, stdout } = await run('test', 'tests', '--min-coverage', '50', '--coverage')
      expect(code).toBe(0)
      expect(stdout).toMatch(/^ROUTE +ALLOWED +REFUSED\nGET \/orders +1 +1\n/)
      expect(await run('test', 'tests', '--min-coverage', '51')).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('Less than --min-coverage 51 %'),
      })
    },
  )

  test('of a policy with mistakes is refused with them', async () => {
    write('mistaken.ts', POLICY.replace("['standard']", "['none']"))
    const file = write('mistaken.policy-test.ts', table().replace('portcullis.config', 'mistaken'))
    expect(await run('test', file)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('unknown limit none'),
    })
  })

  test.each([
    [['absent'], '', 'there is no file or folder'],
    [['tmp'], '', 'has no *.policy-test.ts'],
    [['a.ts'], 'export default 1', 'its default export must be { policy, rows }'],
    [
      ['b.ts'],
      table("{ request: 'GET', expect: 200 }"),
      'row 1: request: "GET" must have the form',
    ],
    [['c.ts'], table("{ request: 'GET /', expect: 200, role: 'a' }"), 'unknown field "role"'],
    [['--min-coverage', '101'], '', '--min-coverage must be a percentage'],
  ])('%j of %j is a wrong usage', async (args, text, message) => {
    if (text !== '') write(args[0] ?? '', text)
    expect(await run('test', ...args)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(message),
    })
  })
})

describeInLong('policy matrix', () => {
  test('is a table, Markdown, JSON, or a page of HTML without scripts', async () => {
    write('portcullis.config.ts', POLICY)
    const cells = 'refused | refused | refused | allowed'
    const { stdout: table } = await shell('matrix')
    expect(table).toMatch(
      /^\d+ rows; may call: anonymous \d+, no role \d+, reader \d+, admin \d+\nROUTE +ANONYMOUS +NO ROLE +READER +ADMIN +RELATION/,
    )
    expect(table).toMatch(/^DELETE \/orders\/:id +· +· +· +✓ /m)
    expect((await run('matrix', '--format', 'markdown')).stdout).toContain(
      `| DELETE /orders/:id | ${cells} |`,
    )
    expect(JSON.parse((await run('matrix', '--json')).stdout)).toMatchObject({
      callers: ['anonymous', 'no role', 'reader', 'admin'],
      rows: [
        { route: 'GET /orders', admits: { anonymous: false, reader: true } },
        { route: 'DELETE /orders/:id', admits: { reader: false, admin: true } },
      ],
    })
    const { stdout: page } = await run('matrix', '--format', 'html')
    expect(page).toContain('<th scope="row">DELETE /orders/:id</th>')
    expect(page).toMatch(/<html lang="en">[\s\S]*<caption[\s\S]*<th scope="col">reader<\/th>/)
    expect(page).not.toMatch(/<script|<img|<link|src=|https?:/)
  })

  test('of a policy with mistakes is refused with them', async () => {
    const wrong = write('wrong-matrix.ts', POLICY.replace("['standard']", "['none']"))
    const { code, stderr } = await run('matrix', wrong)
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/is not valid\n {2}- .*unknown limit none; define it: limits\.none\n$/),
    ])
  })
})

describeInLong('policy diff', () => {
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.com', ...args], {
      cwd: folder,
    })

  beforeAll(() => {
    const before = POLICY.replace(
      "import { definePolicy } from 'portcullis'",
      "$&\nimport { roles } from './roles.ts'",
    ).replace(/ {2}roles: .*/, '  roles,')
    write('portcullis.config.ts', before)
    write('roles.ts', "export const roles = { reader: ['orders:read'], admin: ['orders:*'] }\n")
    write('.gitignore', 'node_modules\ntmp\n')
    git('init', '-q', '-b', 'main')
    git('add', '.')
    git('commit', '-q', '-m', 'first')
    write('roles.ts', "export const roles = { reader: ['orders:*'], admin: ['orders:*'] }\n")
  })

  test('compares with a revision, whose own modules it imports, in each way to name it', async () => {
    const expected = 'widening (1)\n  reader gains DELETE /orders/:id\n'
    const file = 'portcullis.config.ts'
    expect(await shell('diff', '--rev', 'main')).toMatchObject({ code: 0, stdout: expected })
    expect((await shell('diff', `HEAD:${file}`, file)).stdout).toBe(expected)
    expect((await shell('diff', `HEAD:./${file}`, file)).stdout).toBe(expected)
    expect((await shell('diff', file, `HEAD:${file}`)).stdout).toContain('reader loses DELETE')
    expect((await shell('diff', file, file)).stdout).toBe('No changes.\n')
  })

  test('fails on the class of --fail-on only', async () => {
    expect((await shell('diff', '--rev', 'main', '--fail-on', 'widening')).code).toBe(1)
    expect((await shell('diff', '--rev', 'main', '--fail-on', 'any')).code).toBe(1)
    expect((await shell('diff', '--rev', 'main', '--fail-on', 'narrowing')).code).toBe(0)
  })

  test('prints JSON and Markdown', async () => {
    const { stdout } = await shell('diff', '--rev', 'main', '--json')
    expect(JSON.parse(stdout)).toEqual({
      changes: [
        {
          effect: 'widening',
          of: 'DELETE /orders/:id',
          text: 'reader gains DELETE /orders/:id',
          gain: ['reader'],
        },
      ],
    })
    expect((await shell('diff', '--rev', 'main', '--format', 'markdown')).stdout).toContain(
      '| widening | reader gains DELETE /orders/:id |',
    )
  })

  test.each([
    [['--rev', 'no-such-revision'], 'there is no revision no-such-revision in this Git repository'],
    [['--rev', '--output=x'], 'there is no revision --output=x in this Git repository'],
    [['HEAD:absent.ts', 'portcullis.config.ts'], 'HEAD has no file absent.ts'],
    [['portcullis.config.ts'], 'name two policies'],
  ])('%j is a wrong usage', async (args, text) => {
    expect(await shell('diff', ...args)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(text),
    })
  })

  test('a mistake has the place, the text and the suggestion of policy check, in a revision too', async () => {
    const file = 'mistaken.ts'
    write(file, POLICY.replace("['standard']", "['standrd']"))
    const { stdout } = await shell('check', file)
    const [at = '', text = '', remedy = ''] = stdout.split(/(?: error .*)?\n\s*/)
    expect([at, remedy]).toEqual([
      expect.stringMatching(/^mistaken\.ts:\d+:\d+$/),
      expect.any(String),
    ])
    expect(remedy).toBe('did you mean "standard"?')
    const { code, stderr } = await shell('diff', 'portcullis.config.ts', file)
    expect([code, stderr]).toEqual([1, expect.stringContaining(`  - ${at}: ${text}; ${remedy}\n`)])
    git('checkout', '-q', '-b', 'mistaken')
    git('add', '-f', file)
    git('commit', '-q', '-m', 'second')
    git('checkout', '-q', 'main')
    const old = await shell('diff', `mistaken:${file}`, 'portcullis.config.ts')
    expect([old.code, old.stderr]).toEqual([
      1,
      expect.stringContaining(`  - mistaken:${at}: ${text}`),
    ])
  })

  test('a repository without commits is named as the cause', async () => {
    const empty = join(folder, 'empty')
    execFileSync('git', ['init', '-q', empty])
    const env = { TMPDIR: temporary, GIT_DIR: join(empty, '.git') }
    expect(await runCli(['policy', 'diff', '--rev', 'main'], { cwd: folder, env })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('this Git repository has no commits yet'),
    })
  })

  test('leaves no folder behind', async () => {
    await shell('diff', '--rev', 'main')
    expect(readdirSync(temporary)).toEqual([])
  })
})

describe('policy replay', () => {
  afterAll(closeStubGateways)

  const recorded = {
    requestId: 'request-1',
    time: '2026-11-20T16:00:00.000Z',
    method: 'DELETE',
    route: '/orders/:id',
    decision: 'allow',
    reason: 'ok',
    address: '192.0.2.1',
    actor: { issuer: 'https://issuer.test', subject: 'alice', client: 'shop' },
  }
  const next = () =>
    write('next.ts', POLICY.replace("admin: ['orders:*']", "admin: ['orders:read']"))
  const callers = () => write('callers.json', '\ufeff[{ "subject": "alice", "roles": ["admin"] }]')
  const replay = (input: string, ...args: string[]) => {
    const known = ['--recorded', write('before.ts', POLICY), '--callers', callers()]
    return runHere(['policy', 'replay', next(), ...known, ...args], { cwd: folder, input })
  }

  test('reads standard input, prints the changes and fails on their class', async () => {
    const input = `\ufeff${JSON.stringify(recorded)}\r\n`
    const { code, stdout, stderr } = await replay(input, '--file', '-')
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toContain(
      '1 request of 1 client that was allowed would be refused: permission_missing:orders:delete\n' +
        '  DELETE /orders/:id, roles admin\n  subjects: alice (1)\n',
    )
    expect((await replay(input, '--file', '-', '--fail-on', 'refused')).code).toBe(1)
    expect((await replay(input, '--file', '-', '--fail-on', 'allowed')).code).toBe(0)
  })

  testInLong(
    'uses the recorded roles of an event and of an exported row, unless one is missing',
    async () => {
      const grants = { roles: ['admin'], scopes: [] }
      const { requestId, time, actor, ...columns } = recorded
      const row = {
        event: {
          ...columns,
          ...actor,
          grants: JSON.stringify(grants),
          request_id: requestId,
          time_ms: Date.parse(time),
        },
      }
      const lines = [
        { ...recorded, grants },
        row,
        { ...recorded, grants: { roles: ['admin', '…[+3]'], scopes: [] } },
      ]
      const input = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
      const args = ['--recorded', write('before.ts', POLICY), '--file', '-', '--json']
      const ended = await runHere(['policy', 'replay', next(), ...args], { cwd: folder, input })
      expect(ended.code, ended.stderr).toBe(0)
      const report = JSON.parse(ended.stdout)
      expect(report).toMatchObject({ events: 3, unknown: 1 })
      expect(report.changes).toHaveLength(1)
    },
  )

  testInLong('counts malformed lines, and exits with 1', async () => {
    const { code, stdout } = await replay('{\n', '--file', '-', '--json')
    expect(code).toBe(1)
    expect(JSON.parse(stdout)).toMatchObject({ events: 0, malformed: 1, changes: [] })
  })

  testInLong('reads the audit trail of the gateway', async () => {
    const { url, requests } = await startStubGateway({
      '/-/admin/audit': { body: { events: [recorded, recorded] } },
    })
    const known = ['--recorded', write('before.ts', POLICY), '--callers', callers()]
    const { code, stdout } = await runCli(
      ['policy', 'replay', next(), '--since', '7d', '--url', url, '--json', ...known],
      {
        cwd: folder,
        env: { PORTCULLIS_CLIENT_ID: 'a-client', PORTCULLIS_CLIENT_SECRET: 'a-secret' },
      },
    )
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ events: 2, changed: 2, malformed: 0 })
    expect(requests.at(-1)?.query).toContain('since=')
  })

  test.each([
    [[], 'name either --since'],
    [['--file', 'absent.ndjson'], 'absent.ndjson cannot be read'],
    [['--file', '-', '--recorded', 'absent.ts'], '--recorded: there is no file'],
    [['--file', '-', '--rev', 'main', '--recorded', 'next.ts'], 'use one'],
    [['--file', '-', '--callers', 'absent.json'], '--callers: absent.json cannot be read'],
  ])('%j is a wrong usage', async (args, text) => {
    next()
    expect(await run('replay', 'next.ts', ...args)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(text),
    })
  })
})

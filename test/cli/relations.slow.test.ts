import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createTupleBatches, tupleOfLine } from '../../cli/tuples.ts'
import { testInLong } from '../harness/long.ts'
import { runCli } from './command-line.ts'
import { type Operator, startOperator } from './operator.ts'
import { closeStubGateways, startStubGateway } from './stub-gateway.ts'

let operator: Operator
let folder: string
beforeAll(async () => {
  operator = await startOperator()
  folder = await mkdtemp(join(tmpdir(), 'portcullis-tuples-'))
})
afterAll(async () => {
  await operator?.close()
  await rm(folder, { recursive: true, force: true })
})
afterEach(closeStubGateways)

const relations = (...args: string[]) => operator.attempt(['relations', ...args])

describe('relations', () => {
  test('are written, checked, explained, listed, and deleted', async () => {
    const tuples = ['order:c1#project@project:p', 'project:p#viewer@user:cleo']
    expect(await operator.run('relations', 'write', ...tuples)).toMatch(/^written +2$/m)
    expect(await operator.runJson('relations', 'write', ...tuples)).toMatchObject({ written: 0 })
    for (const command of [['check'], ['relations', 'check']]) {
      const { code, stdout } = await operator.attempt([
        ...command,
        'order:c1',
        'viewer',
        'user:cleo',
      ])
      expect(code).toBe(0)
      expect(stdout).toMatch(/^outcome +allowed\nconsistencyToken +\S+\n$/)
    }
    const traced = await relations('check', 'order:c1', 'viewer', 'user:cleo', '--trace')
    expect(traced.stdout).toContain('project:p#viewer@user:cleo')
    expect(await operator.run('expand', 'order:c1', 'viewer')).toBe(
      'order:c1#viewer\n  any of\n    order:c1#owner\n    order:c1#approver\n' +
        '    from order:c1#project\n      project:p#viewer\n',
    )
    expect(await operator.run('relations', 'read', '--object', 'order:c1')).toBe(`${tuples[0]}\n`)
    expect(await operator.run('relations', 'read', '--subject', 'user:cleo')).toBe(`${tuples[1]}\n`)
    await operator.run('relations', 'delete', ...tuples)
    const { code, stdout } = await operator.attempt(['check', 'order:c1', 'viewer', 'user:cleo'])
    expect(code).toBe(1)
    expect(stdout).toMatch(/^outcome +denied$/m)
  })

  testInLong('that exceed the maximum depth are unknown: check exits with 3', async () => {
    const teams = Array.from(
      { length: 40 },
      (_, n) => `team:far${n}#member@team:far${n + 1}#member`,
    )
    teams.push('team:far40#member@user:finn')
    await operator.run('relations', 'write', ...teams)
    const check = ['check', 'team:far0', 'member', 'user:finn']
    const { code, stdout } = await operator.attempt(check)
    expect(code).toBe(3)
    expect(stdout).toMatch(/^outcome +unknown\nwhy +max_depth_exceeded\n/)
    const asJson = await operator.attempt([...check, '--json'])
    expect(asJson.code).toBe(3)
    expect(JSON.parse(asJson.stdout)).toMatchObject({ allowed: false, outcome: 'unknown' })
    await operator.run('relations', 'delete', ...teams)
  })

  testInLong('are checked with contextual tuples, and with a consistency token', async () => {
    const check = ['check', 'order:c2', 'owner', 'user:dora', '--json']
    const tuple = 'order:c2#owner@user:dora'
    expect((await operator.attempt(check)).code).toBe(1)
    expect((await operator.attempt([...check, '--with', tuple])).code).toBe(0)
    const { consistencyToken = '' } = await operator.runJson('relations', 'write', tuple)
    const known = await operator.attempt([...check, '--at-least', consistencyToken])
    expect(JSON.parse(known.stdout)).toEqual({
      allowed: true,
      outcome: 'allowed',
      consistencyToken,
    })
    await operator.run('relations', 'delete', tuple)
  })

  testInLong('of a tenant do not apply to other tenants', async () => {
    const tuple = 'order:c3#owner@user:eve'
    await operator.run('relations', 'write', tuple, '--tenant', 'acme')
    const check = ['check', 'order:c3', 'owner', 'user:eve']
    expect((await operator.attempt(check)).code).toBe(1)
    expect((await operator.attempt([...check, '--tenant', 'acme'])).code).toBe(0)
    await operator.run('relations', 'delete', tuple, '--tenant', 'acme')
  })

  testInLong(
    'that are malformed exit with 2 before a request, and with 1 if the gateway refuses them',
    async () => {
      const unwritten = await relations('write', 'order:1')
      expect(unwritten.code).toBe(2)
      expect(unwritten.stderr).toContain('It must be object#relation@subject.')
      const refused = await relations('write', 'order:1#owner@user:a', 'order:1#own@user:a')
      expect(refused.code).toBe(1)
      expect(refused.stderr).toContain('body/writes/1/relation: must be a relation of order')
      expect((await operator.attempt(['check', 'order:1', 'viewer', 'not-an-object'])).code).toBe(1)
    },
  )
})

describe('relations import', () => {
  const lines = Array.from({ length: 250 }, (_, n) => `order:i${n}#owner@user:ivy`)

  test('writes text and JSON in batches, can be repeated, and accepts the output of read --all', async () => {
    const file = join(folder, 'tuples')
    const asJson = lines.map((line, n) => {
      const [object, rest = ''] = line.split('#')
      const [relation, subject] = rest.split('@')
      if (n % 3 === 0) return JSON.stringify({ object, relation, subject })
      return n % 3 === 1 ? JSON.stringify({ user: subject, relation, object }) : `  ${line}\r`
    })
    await writeFile(file, ['# all of it', '', ...asJson, lines[0]].join('\n'))
    const first = await operator.runJson('relations', 'import', file)
    // The repeated first tuple is in another batch.
    expect(first).toMatchObject({ tuples: 251, written: 250 })
    const again = await operator.attempt(['relations', 'import', '-'], `${lines.join('\n')}\n`)
    expect([again.code, again.stdout]).toEqual([0, '250 tuples, 0 of them new.\n'])
    const text = await operator.run('relations', 'read', '--subject', 'user:ivy', '--all')
    expect(text.trim().split('\n').sort()).toEqual([...lines].sort())
    const all = ['relations', 'read', '--subject', 'user:ivy', '--all', '--json']
    const json = await operator.run(...all)
    const back = await operator.attempt(['relations', 'import', '-', '--json'], json)
    expect(JSON.parse(back.stdout)).toMatchObject({ tuples: 250, written: 0 })
  })

  testInLong('reports a file that it cannot read', async () => {
    const missing = join(folder, 'no-such-file')
    for (const [file, code] of [
      [missing, 'ENOENT'],
      [folder, 'EISDIR'],
    ] as const)
      expect(await relations('import', file)).toEqual({
        code: 2,
        stdout: '',
        stderr: `portcullis: ${file} cannot be read (${code}); nothing was written\n`,
      })
  })

  testInLong('names the line that is not a tuple, and the last line that was written', async () => {
    const some = [...lines.slice(0, 120), 'order:1 owner user:a']
    const { code, stdout, stderr } = await operator.attempt(
      ['relations', 'import', '-', '--tenant', 'lines'],
      some.join('\n'),
    )
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toBe(
      'portcullis: line 121 is not a tuple: it contains white space, which must be %20 in ids; ' +
        'the tuples up to line 100 were written\n',
    )
  })

  testInLong('names the lines that the gateway refuses', async () => {
    const some = ['# first', 'order:1#owner@user:a', '', 'order:1#own@user:a', 'bill:1#x@user:a']
    const { code, stderr } = await operator.attempt(
      ['relations', 'import', '-', '--tenant', 'lines'],
      some.join('\n'),
    )
    expect(code).toBe(1)
    expect(stderr).toContain('The gateway refused the request; nothing was written\n')
    expect(stderr).toContain('  line 4/relation: must be a relation of order\n')
    expect(stderr).toContain('  line 5/object: has a type that the model does not define\n')
  })

  testInLong(
    'tries again while it is rate-limited, and reports it if all attempts fail',
    async () => {
      const body = { code: 'rate_limited', title: 'Too many requests', status: 429 }
      const { url, requests } = await startStubGateway({
        '/-/admin/relations': { status: 429, headers: { 'Retry-After': '1' }, body },
      })
      const env = { PORTCULLIS_CLIENT_ID: 'x', PORTCULLIS_CLIENT_SECRET: 'y' }
      const run = await runCli(['relations', 'import', '-', '--url', url], {
        env,
        input: 'order:1#owner@user:a\n',
      })
      expect(run.code).toBe(1)
      expect(run.stderr).toContain('rate_limited: Too many requests; nothing was written')
      expect(requests.filter(({ path }) => path === '/-/admin/relations')).toHaveLength(6)
    },
  )
})

test('check exits with 3 during an outage of Redis, and returns a decision after it', async () => {
  const check = ['check', 'order:c4', 'owner', 'user:gil']
  expect((await operator.attempt(check)).code).toBe(1)
  operator.redis.setAnswering(false)
  const outage = await operator.attempt(check)
  operator.redis.setAnswering(true)
  expect([outage.code, outage.stdout]).toEqual([3, ''])
  expect(outage.stderr).toMatch(/^portcullis: (temporarily|dependency)_unavailable: /)
  const answered = async () => (await operator.attempt(check)).code
  await expect.poll(answered).toBe(1)
})

test.each([
  ['', null],
  ['   # comment', null],
  ['order:1#viewer@user:a@b', { object: 'order:1', relation: 'viewer', subject: 'user:a@b' }],
  ['a@b:1#r@c:d#e', { object: 'a@b:1', relation: 'r', subject: 'c:d#e' }],
  ['order:1#viewer', undefined],
  ['order:1@user:a', undefined],
  ['order:1#viewer@user:a b', undefined],
  ['{"object":"a:1","relation":"r"}', undefined],
  ['{"object":"a:1","relation":"r","subject":1}', undefined],
  ['{"object":"a:1","relation":"r","user":"u:1","condition":{"name":"c"}}', undefined],
  ['{"object":', undefined],
  [
    '{"object":"a:1","relation":"r","user":"u:1"}',
    { object: 'a:1', relation: 'r', subject: 'u:1' },
  ],
])('the line %j of a file is parsed', (line, tuple) => {
  expect(tupleOfLine(line)).toEqual(tuple)
})

test('a JSON line with two subjects is not a tuple', () => {
  for (const user of ['user:a', 'user:b'])
    expect(
      tupleOfLine(
        JSON.stringify({ object: 'order:7', relation: 'viewer', subject: 'user:b', user }),
      ),
    ).toBeUndefined()
})

test('a batch has at most 100 tuples and 24 KB of escaped text, the limits of the gateway', () => {
  const batches = createTupleBatches()
  const sizes: number[] = []
  const add = (count: number, id: string) => {
    for (let line = 0; line < count; line += 1) {
      const tuple = { object: `order:${line}${id}`, relation: 'r', subject: 'user:a' }
      const full = batches.add({ line, tuple })
      if (full !== undefined) {
        sizes.push(full.length)
        const text = full.map((one) => `+${one.tuple.object}#r@user:a`).join(' ')
        expect(Buffer.byteLength(JSON.stringify(text))).toBeLessThan(24_576)
      }
    }
  }
  add(250, '')
  add(100, '"'.repeat(250))
  expect(sizes.slice(0, 2)).toEqual([100, 100])
  expect(sizes.at(-1)).toBeLessThan(50)
})

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createTupleBatches, tupleOfLine } from '../../cli/tuples.ts'
import { closeAnswers, startAnswers } from './answers.ts'
import { runCli } from './command-line.ts'
import { type Operator, startOperator } from './operator.ts'

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
afterEach(closeAnswers)

const relations = (...args: string[]) => operator.tries(['relations', ...args])

describe('relations', () => {
  test('are written, asked for, explained, listed and deleted', async () => {
    const tuples = ['order:c1#project@project:p', 'project:p#viewer@user:cleo']
    expect(await operator.does('relations', 'write', ...tuples)).toMatch(/^written +2$/m)
    expect(await operator.gets('relations', 'write', ...tuples)).toMatchObject({ written: 0 })
    for (const check of [['check'], ['relations', 'check']]) {
      const { code, stdout } = await operator.tries([...check, 'order:c1', 'viewer', 'user:cleo'])
      expect(code).toBe(0)
      expect(stdout).toMatch(/^outcome +allowed\nconsistencyToken +\S+\n$/)
    }
    const traced = await relations('check', 'order:c1', 'viewer', 'user:cleo', '--trace')
    expect(traced.stdout).toContain('project:p#viewer@user:cleo')
    expect(await operator.does('expand', 'order:c1', 'viewer')).toBe(
      'order:c1#viewer\n  any of\n    order:c1#owner\n    order:c1#approver\n' +
        '    from order:c1#project\n      project:p#viewer\n',
    )
    expect(await operator.does('relations', 'read', '--object', 'order:c1')).toBe(`${tuples[0]}\n`)
    expect(await operator.does('relations', 'read', '--subject', 'user:cleo')).toBe(
      `${tuples[1]}\n`,
    )
    await operator.does('relations', 'delete', ...tuples)
    const { code, stdout } = await operator.tries(['check', 'order:c1', 'viewer', 'user:cleo'])
    expect(code).toBe(1)
    expect(stdout).toMatch(/^outcome +denied$/m)
  })

  test('that lead on too far are not denied, and allow nobody: 3', async () => {
    const teams = Array.from(
      { length: 40 },
      (_, n) => `team:far${n}#member@team:far${n + 1}#member`,
    )
    teams.push('team:far40#member@user:finn')
    await operator.does('relations', 'write', ...teams)
    const question = ['check', 'team:far0', 'member', 'user:finn']
    const { code, stdout } = await operator.tries(question)
    expect(code).toBe(3)
    expect(stdout).toMatch(/^outcome +unknown\nwhy +max_depth_exceeded\n/)
    const asJson = await operator.tries([...question, '--json'])
    expect(asJson.code).toBe(3)
    expect(JSON.parse(asJson.stdout)).toMatchObject({ allowed: false, outcome: 'unknown' })
    await operator.does('relations', 'delete', ...teams)
  })

  test('may be taken to be there, and must be known, for a question', async () => {
    const question = ['check', 'order:c2', 'owner', 'user:dora', '--json']
    const tuple = 'order:c2#owner@user:dora'
    expect((await operator.tries(question)).code).toBe(1)
    expect((await operator.tries([...question, '--with', tuple])).code).toBe(0)
    const { consistencyToken = '' } = await operator.gets('relations', 'write', tuple)
    const known = await operator.tries([...question, '--at-least', consistencyToken])
    expect(JSON.parse(known.stdout)).toEqual({
      allowed: true,
      outcome: 'allowed',
      consistencyToken,
    })
    await operator.does('relations', 'delete', tuple)
  })

  test("of a tenant are that tenant's", async () => {
    const tuple = 'order:c3#owner@user:eve'
    await operator.does('relations', 'write', tuple, '--tenant', 'acme')
    const question = ['check', 'order:c3', 'owner', 'user:eve']
    expect((await operator.tries(question)).code).toBe(1)
    expect((await operator.tries([...question, '--tenant', 'acme'])).code).toBe(0)
    await operator.does('relations', 'delete', tuple, '--tenant', 'acme')
  })

  test('that are none end a command: 2 before anything is sent, 1 by the gateway', async () => {
    const unwritten = await relations('write', 'order:1')
    expect(unwritten.code).toBe(2)
    expect(unwritten.stderr).toContain('It must be object#relation@subject.')
    const refused = await relations('write', 'order:1#owner@user:a', 'order:1#own@user:a')
    expect(refused.code).toBe(1)
    expect(refused.stderr).toContain('body/writes/1/relation: must be a relation of order')
    expect((await operator.tries(['check', 'order:1', 'viewer', 'nobody'])).code).toBe(1)
  })
})

describe('relations import', () => {
  const lines = Array.from({ length: 250 }, (_, n) => `order:i${n}#owner@user:ivy`)

  test('writes text and JSON, in batches, and again without harm; read --all gives it back', async () => {
    const file = join(folder, 'tuples')
    const asJson = lines.map((line, n) => {
      const [object, rest = ''] = line.split('#')
      const [relation, subject] = rest.split('@')
      if (n % 3 === 0) return JSON.stringify({ object, relation, subject })
      return n % 3 === 1 ? JSON.stringify({ user: subject, relation, object }) : `  ${line}\r`
    })
    await writeFile(file, ['# all of it', '', ...asJson, lines[0]].join('\n'))
    const first = await operator.gets('relations', 'import', file)
    // The first one once more is in another batch.
    expect(first).toMatchObject({ tuples: 251, written: 250 })
    const again = await operator.tries(['relations', 'import', '-'], `${lines.join('\n')}\n`)
    expect([again.code, again.stdout]).toEqual([0, '250 tuples, 0 of them new.\n'])
    const text = await operator.does('relations', 'read', '--subject', 'user:ivy', '--all')
    expect(text.trim().split('\n').sort()).toEqual([...lines].sort())
    const all = ['relations', 'read', '--subject', 'user:ivy', '--all', '--json']
    const json = await operator.does(...all)
    const back = await operator.tries(['relations', 'import', '-', '--json'], json)
    expect(JSON.parse(back.stdout)).toMatchObject({ tuples: 250, written: 0 })
  })

  test('names the file that cannot be read', async () => {
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

  test('names the line of what is no tuple, and what was written before it', async () => {
    const some = [...lines.slice(0, 120), 'order:1 owner user:a']
    const { code, stdout, stderr } = await operator.tries(
      ['relations', 'import', '-', '--tenant', 'lines'],
      some.join('\n'),
    )
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toBe(
      'portcullis: line 121 is not a tuple: it contains white space, which must be %20 in ids; ' +
        'the tuples up to line 100 were written\n',
    )
  })

  test('names the line of what the gateway refuses', async () => {
    const some = ['# first', 'order:1#owner@user:a', '', 'order:1#own@user:a', 'bill:1#x@user:a']
    const { code, stderr } = await operator.tries(
      ['relations', 'import', '-', '--tenant', 'lines'],
      some.join('\n'),
    )
    expect(code).toBe(1)
    expect(stderr).toContain('The gateway refused the request; nothing was written\n')
    expect(stderr).toContain('  line 4/relation: must be a relation of order\n')
    expect(stderr).toContain('  line 5/object: has a type that the model does not define\n')
  })

  test('waits for what passes, and says so when it does not', async () => {
    const body = { code: 'rate_limited', title: 'Too many requests', status: 429 }
    const { url, asked } = await startAnswers({
      '/-/admin/relations': { status: 429, headers: { 'Retry-After': '1' }, body },
    })
    const env = { PORTCULLIS_CLIENT_ID: 'x', PORTCULLIS_CLIENT_SECRET: 'y' }
    const run = await runCli(['relations', 'import', '-', '--url', url], {
      env,
      input: 'order:1#owner@user:a\n',
    })
    expect(run.code).toBe(1)
    expect(run.stderr).toContain('rate_limited: Too many requests; nothing was written')
    expect(asked.filter(({ path }) => path === '/-/admin/relations')).toHaveLength(6)
  })
})

test('check ends with 3 while Redis is gone, and with its answer afterwards', async () => {
  const question = ['check', 'order:c4', 'owner', 'user:gil']
  expect((await operator.tries(question)).code).toBe(1)
  operator.redis.setAnswering(false)
  const outage = await operator.tries(question)
  operator.redis.setAnswering(true)
  expect([outage.code, outage.stdout]).toEqual([3, ''])
  expect(outage.stderr).toMatch(/^portcullis: (temporarily|dependency)_unavailable: /)
  const answered = async () => (await operator.tries(question)).code
  await expect.poll(answered, { timeout: 20_000 }).toBe(1)
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
])('a line of a file: %j', (line, tuple) => {
  expect(tupleOfLine(line)).toEqual(tuple)
})

test('a line of JSON that names two subjects names none', () => {
  for (const user of ['user:a', 'user:b'])
    expect(
      tupleOfLine(
        JSON.stringify({ object: 'order:7', relation: 'viewer', subject: 'user:b', user }),
      ),
    ).toBeUndefined()
})

test('a batch is what the gateway takes: 100 tuples, and 24 KB with what is escaped', () => {
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

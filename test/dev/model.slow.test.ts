import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest'
import { jsonTextOf } from '../../dev/model/file.ts'
import { modelOf } from '../../dev/model/language.ts'
import { compileModel } from '../../src/access/relations/compile-model.ts'
import { testInLong } from '../harness/long.ts'
import { ROOT } from '../harness/process.ts'
import { type Checkout, makeCheckout, type Outcome } from './start/checkout.ts'

const HEADER = ['model', '  schema 1.1', 'type user', 'type document', '  relations'].join('\n')
const HEADER_WORDS = 'expected: a model begins with the lines "model" and "schema 1.1"'
/** Returns a model. Its definitions begin in line 6, and their names in column 12. */
const documentsWith = (...definitions: string[]): string =>
  [HEADER, ...definitions.map((definition) => `    define ${definition}`), ''].join('\n')

function mistakesIn(text: string): readonly string[] {
  try {
    modelOf(text)
    return []
  } catch (error) {
    return (error as Error).message.split('\n')
  }
}

describe('the modelling language', () => {
  it('is translated to the JSON form of OpenFGA', () => {
    const text = `model
      schema 1.1
    type user
    # Teams can be nested.
    type team
      relations
        define member: [user, team#member]
    type document
      relations
        define parent: [document] # a folder, too ((((((((((((
        define blocked: [user]
        define editor: [user:*, team#member]
        define viewer: ([user] or editor or viewer from parent) but not blocked
        define can_sign: viewer and editor`.replaceAll('\n    ', '\n')
    const named = (...types: object[]) => ({ directly_related_user_types: types })
    const viewer = { computedUserset: { relation: 'viewer' } }
    const editor = { computedUserset: { relation: 'editor' } }
    expect(modelOf(text)).toEqual({
      schema_version: '1.1',
      type_definitions: [
        { type: 'user', relations: {}, metadata: null },
        {
          type: 'team',
          relations: { member: { this: {} } },
          metadata: {
            relations: { member: named({ type: 'user' }, { type: 'team', relation: 'member' }) },
          },
        },
        {
          type: 'document',
          relations: {
            parent: { this: {} },
            blocked: { this: {} },
            editor: { this: {} },
            viewer: {
              difference: {
                base: {
                  union: {
                    child: [
                      { this: {} },
                      editor,
                      { tupleToUserset: { tupleset: { relation: 'parent' }, ...viewer } },
                    ],
                  },
                },
                subtract: { computedUserset: { relation: 'blocked' } },
              },
            },
            can_sign: { intersection: { child: [viewer, editor] } },
          },
          metadata: {
            relations: {
              parent: named({ type: 'document' }),
              blocked: named({ type: 'user' }),
              editor: named({ type: 'user', wildcard: {} }, { type: 'team', relation: 'member' }),
              viewer: named({ type: 'user' }),
              can_sign: named(),
            },
          },
        },
      ],
    })
    expect(modelOf(text.replaceAll('\n', '\r\n'))).toEqual(modelOf(text))
  })

  it.each<[string, string, readonly string[]]>([
    ['an empty text', '', [`1:1: "model" ${HEADER_WORDS}`]],
    ['only a comment', '\n# later\n', [`3:1: "model" ${HEADER_WORDS}`]],
    ['a text without a model', 'type user\n', [`1:1: "model" ${HEADER_WORDS}`]],
    ['JSON', '{\n  "schema_version": "1.1"\n}\n', [`1:1: "model" ${HEADER_WORDS}`]],
    ['only a schema', '# mine\n  schema 1.1\n', [`2:3: "model" ${HEADER_WORDS}`]],
    ['a header on one line', 'model schema 1.1\ntype user\n', [`1:1: "model" ${HEADER_WORDS}`]],
    [
      'a model without a schema',
      'model # mine\n\n# all of it\ntype user\ntype team\n',
      [`4:1: "schema 1.1" ${HEADER_WORDS}`],
    ],
    ['only the word model', 'model', [`1:1: "schema 1.1" ${HEADER_WORDS}`]],
    [
      'a model without a type',
      'model\n  schema 1.1\n\n',
      ['4:1: type expected: the model has no types'],
    ],
    [
      'a schema that does not exist',
      'model\n  schema 7\ntype user\n',
      [`2:3: "schema 1.1" ${HEADER_WORDS}`],
    ],
    [
      'an incomplete definition',
      documentsWith('viewer: [user] and'),
      ["6:30: mismatched input '\\n' expecting"],
    ],
    [
      'a duplicate relation',
      documentsWith('viewer: [user]', 'viewer: [user]'),
      ["7:12: 'viewer' is already defined in 'document'"],
    ],
    [
      'another schema',
      'model\n  schema 1.2\ntype user\n',
      ['2:10: schema 1.2 is not supported; use 1.1'],
    ],
    [
      'a module',
      'module wiki\ntype user\n',
      ['1:8: modules are not supported; write one model of schema 1.1'],
    ],
    [
      'an extension',
      `${HEADER.replace('type document', 'extend type document')}\n    define viewer: [user]\n`,
      ['4:13: extend can only be used in a modular model'],
    ],
    [
      'conditions',
      `${documentsWith('viewer: [user with late]')}\ncondition late(hour: int) {\n  hour > 22\n}\n`,
      [
        '6:12: document#viewer: user with late: conditions are not supported',
        '8:11: condition late: conditions are not supported',
      ],
    ],
    [
      'unknown names, each where it is used',
      `${documentsWith('owner: [group]', 'viewer: editor', 'reader: owner from parent')}type folder\n  relations\n    define viewer: owner\n`,
      [
        '6:12: document#owner: group: unknown type group',
        '7:12: document#viewer: there is no relation editor',
        '8:12: document#reader: there is no relation parent',
        '11:12: folder#viewer: there is no relation owner',
      ],
    ],
    [
      'names that the tools of OpenFGA drop',
      `${documentsWith('__proto__: [user]', 'constructor: [user]')}type toString\n`,
      [
        "6:12: __proto__ cannot be a name, because OpenFGA's tools drop it",
        "7:12: constructor cannot be a name, because OpenFGA's tools drop it",
        "8:6: toString cannot be a name, because OpenFGA's tools drop it",
      ],
    ],
    [
      'a name that only OpenFGA accepts',
      documentsWith('can.view: [user]'),
      ['6:12: document#can.view: is not a name'],
    ],
    [
      'a name that only the gateway accepts',
      documentsWith(`${'a'.repeat(60)}: [user]`),
      [`6:12: relation '${'a'.repeat(60)}' of type 'document' does not match naming rule`],
    ],
    [
      'a duplicate type',
      `${documentsWith('viewer: [user]')}type document\n`,
      ['4:6: the type `document` is a duplicate.', '7:6: document: this type is defined twice'],
    ],
    [
      'relations that no subject can have',
      documentsWith('viewer: [document#viewer]', 'editor: viewer'),
      [
        '6:12: document#viewer: no subject can ever have it',
        '7:12: document#editor: no subject can ever have it',
      ],
    ],
    [
      'a text that is too long',
      documentsWith('viewer: [user]').padEnd(262_145),
      ['1:1: is longer than 262144 characters'],
    ],
    [
      'deeply nested parentheses',
      documentsWith(`viewer: ${'('.repeat(100_000)}[user]`),
      ['6:30: is nested deeper than 10 levels'],
    ],
  ])('is refused with line, column and reason: %s', (_what, text, expected) => {
    const mistakes = mistakesIn(text)
    expect(mistakes.length).toBeGreaterThanOrEqual(expected.length)
    for (const [index, start] of expected.entries())
      expect(mistakes[index]?.slice(0, start.length)).toBe(start)
    for (const mistake of mistakes) expect(mistake.length).toBeLessThan(250)
  })
})

describe('npm run -s model', () => {
  let checkout: Checkout

  beforeEach(async () => {
    checkout = await makeCheckout()
  })

  afterEach(() => checkout.close())

  const model = (...args: string[]): Promise<Outcome> =>
    checkout.run(['node', 'dev/model.ts', ...args]).ended
  const write = (name: string, text: string) => writeFile(join(checkout.path, name), text)
  const replaceInModel = async (from: string, to: string) =>
    write('portcullis.fga', (await checkout.file('portcullis.fga')).replace(from, to))

  it('writes the JSON beside the model, only if the model has changed', async () => {
    const npm = () => checkout.run(['npm', 'run', '-s', 'model']).ended
    expect(await npm()).toEqual({
      code: 0,
      stderr: '',
      stdout: 'portcullis.model.json is up to date\n',
    })
    await replaceInModel('define head: [user]', 'define head: [user, team#member]')
    expect(await npm()).toEqual({
      code: 0,
      stderr: '',
      stdout: 'portcullis.model.json is written\n',
    })
    const json = JSON.parse(await checkout.file('portcullis.model.json'))
    expect(compileModel(json).types.get('department')?.get('head')?.directTypes).toHaveLength(2)
  })

  testInLong('reads the given files, and prints a result for each', async () => {
    await write('good.fga', documentsWith('viewer: [user]'))
    await write('bad.fga', documentsWith('viewer: editor', 'owner: [users]'))
    expect(await model('bad.fga', 'good.fga', 'none.fga')).toEqual({
      code: 1,
      stdout: 'good.model.json is written\n',
      stderr: [
        'bad.fga:6:12: document#viewer: there is no relation editor',
        'bad.fga:7:12: document#owner: users: unknown type users',
        'none.fga cannot be read (ENOENT)\n',
      ].join('\n'),
    })
    const names = await readdir(checkout.path)
    expect(names.filter((name) => /^(good|bad)/.test(name)).toSorted()).toEqual([
      ...['bad.fga', 'good.fga', 'good.model.json'],
    ])
  })

  testInLong('does not change the JSON of a model with a mistake', async () => {
    const before = await checkout.file('portcullis.model.json')
    await replaceInModel('define head: [user]', 'define head: [missing]')
    expect(await model()).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /^portcullis\.fga:\d+:12: department#head: missing: unknown type missing\n$/,
      ),
    })
    expect(await checkout.file('portcullis.model.json')).toBe(before)
  })

  testInLong(
    '--check writes nothing, and fails if the JSON is missing, outdated or edited by hand',
    async () => {
      expect(await model('--check')).toEqual({ code: 0, stdout: '', stderr: '' })
      const before = await checkout.file('portcullis.model.json')
      const old = {
        code: 1,
        stdout: '',
        stderr: 'portcullis.model.json does not match portcullis.fga; run: npm run -s model\n',
      }
      await write('portcullis.model.json', before.replace('"1.1"', '"1.1" '))
      expect(await model('--check')).toEqual(old)
      await write('portcullis.model.json', before)
      await replaceInModel('define head: [user]', 'define head: [user, team#member]')
      expect(await model('--check')).toEqual(old)
      expect(await checkout.file('portcullis.model.json')).toBe(before)
      await write('new.fga', documentsWith('viewer: [user]'))
      expect(await model('--check', 'new.fga')).toEqual({
        code: 1,
        stdout: '',
        stderr: 'new.model.json is missing; run: npm run -s model -- new.fga\n',
      })
    },
  )

  testInLong(
    '--check prints the command that corrects the JSON, for every file and from every folder',
    async () => {
      const folder = join(checkout.path, "mine, and bob's")
      await mkdir(folder)
      await writeFile(join(folder, 'notes.fga'), documentsWith('viewer: [user]'))
      const from = (cwd: string, command: string) =>
        checkout.run(['sh', '-c', command], { INIT_CWD: cwd, PORTCULLIS: checkout.path }).ended
      const model = 'node "$PORTCULLIS/dev/model.ts"'
      for (const [cwd, file] of [
        [checkout.path, `'mine, and bob'\\''s/notes.fga'`],
        [folder, 'notes.fga'],
      ] as const) {
        const { stderr } = await from(cwd, `${model} --check ${file}`)
        const [, command = ''] = /; run: (npm run -s model -- .*)\n$/.exec(stderr) ?? []
        expect(command, stderr).toBe(`npm run -s model -- ${file}`)
        const made = await from(cwd, command.replace('npm run -s model --', model))
        expect(made, made.stderr).toMatchObject({ code: 0, stderr: '' })
        expect(await from(cwd, `${model} --check ${file}`)).toMatchObject({ code: 0 })
        await rm(join(folder, 'notes.model.json'))
      }
    },
  )

  testInLong('--help lists every option, and a usage error exits with 2', async () => {
    const help = await model('--help')
    expect({ code: help.code, stderr: help.stderr }).toEqual({ code: 0, stderr: '' })
    for (const word of ['--check', '--help', 'FILE.fga', 'Status 1'])
      expect(help.stdout).toContain(word)
    for (const [args, why] of [
      [['--verify'], "'--verify'"],
      [['portcullis.model.json'], 'portcullis.model.json must be named NAME.fga'],
      [['core/fga.mod'], 'core/fga.mod: modules are not supported; write one model of schema 1.1'],
      [['.fga'], 'must be named NAME.fga'],
    ] as const) {
      const { code, stdout, stderr } = await model(...args)
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
      expect(stderr).toContain(why)
    }
  })

  testInLong(
    'npm start and npm run deploy refuse a model with a mistake or an outdated JSON',
    async () => {
      await replaceInModel('define head: [user]', 'define head: [missing]')
      const wrong =
        /^\w+: portcullis\.fga:\d+:12: department#head: missing: unknown type missing\n$/
      const old =
        /^\w+: portcullis\.model\.json does not match portcullis\.fga; run: npm run -s model\n$/
      const commands = [
        ['node', 'dev/start.ts'],
        ['node', 'dev/deploy.ts', '--dry-run'],
      ] as const
      const expectRefusals = async (stderr: RegExp) => {
        for (const command of commands)
          expect(await checkout.run([...command]).ended).toEqual({
            code: 1,
            stdout: '',
            stderr: expect.stringMatching(stderr),
          })
      }
      await expectRefusals(wrong)
      await replaceInModel('define head: [missing]', 'define head: [team#member]')
      await expectRefusals(old)
      expect(await readdir(checkout.path)).not.toContain('.dev.vars')
    },
  )
})

test('the committed JSON matches the model', async () => {
  const json = await readFile(join(ROOT, 'portcullis.model.json'), 'utf8')
  expect(json).toBe(await jsonTextOf(join(ROOT, 'portcullis.fga')))
  expect(compileModel(JSON.parse(json)).types.size).toBe(7)
})

test('a byte order mark before a model is ignored', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'portcullis-model-'))
  const [plain, marked] = [join(directory, 'plain.fga'), join(directory, 'marked.fga')]
  await writeFile(plain, documentsWith('viewer: [user]'))
  await writeFile(marked, `\uFEFF${documentsWith('viewer: [user]')}`)
  expect(await jsonTextOf(marked)).toBe(await jsonTextOf(plain))
  await rm(directory, { recursive: true })
})

test('the parser of the language is a development dependency that no Worker imports', async () => {
  const { dependencies, devDependencies } = JSON.parse(
    await readFile(join(ROOT, 'package.json'), 'utf8'),
  )
  expect(dependencies).not.toHaveProperty('@openfga/syntax-transformer')
  expect(devDependencies).toHaveProperty('@openfga/syntax-transformer', '0.2.2')
  for (const folder of ['src', 'workers']) {
    const names = await readdir(join(ROOT, folder), { recursive: true })
    const sources = names.filter((name) => name.endsWith('.ts')).map((name) => join(folder, name))
    expect(sources.length).toBeGreaterThan(1)
    for (const source of sources) {
      const text = await readFile(join(ROOT, source), 'utf8')
      expect({ source, imports: text.includes("from '@openfga") }).toMatchObject({ imports: false })
    }
  }
})

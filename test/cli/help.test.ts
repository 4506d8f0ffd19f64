import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CommandUnknownOpts } from '@commander-js/extra-typings'
import { describe, expect, test } from 'vitest'
import { createProgram } from '../../cli/program.ts'
import { ROOT } from '../harness/process.ts'
import { runHere } from './command-here.ts'
import { runCli } from './command-line.ts'

interface Leaf {
  readonly path: string
  readonly command: CommandUnknownOpts
}

/** Returns all visible commands that do something, with their paths. A mere group has no `--json`. */
function leavesOf(command: CommandUnknownOpts, path = command.name()): readonly Leaf[] {
  const children = command
    .createHelp()
    .visibleCommands(command)
    .filter((child) => child.name() !== 'help')
  const isGroup = children.length > 0 && command.options.every(({ long }) => long !== '--json')
  const below = children.flatMap((child) => leavesOf(child, `${path} ${child.name()}`))
  return isGroup ? below : [{ path, command }, ...below]
}

function helpOf(command: CommandUnknownOpts): string {
  let text = ''
  command.configureOutput({
    writeOut: (part) => {
      text += part
    },
  })
  command.outputHelp()
  return text
}

/** Commands that print a script. */
const SCRIPTS = ['portcullis completion']
const leaves = leavesOf(createProgram())
const paths = leaves.map(({ path }) => path)
/** The words of each command that only has commands. */
const groups = [...new Set(paths.map((path) => path.split(' ').slice(1, -1).join(' ')))].map(
  (words) => words.split(' ').filter((word) => word !== ''),
)

describe('the help of every command', () => {
  test('is checked for each of these commands', () => {
    expect(paths).toEqual([
      'portcullis dev',
      'portcullis serve',
      'portcullis redis',
      'portcullis redis import',
      ...['sign', 'mint', 'verify', 'decode'].map((name) => `portcullis token ${name}`),
      'portcullis revoke',
      ...['list', 'delete'].map((name) => `portcullis revocations ${name}`),
      ...['create', 'list', 'show', 'rotate-secret', 'disable', 'hash-secret'].map(
        (name) => `portcullis clients ${name}`,
      ),
      ...['list', 'revoke'].map((name) => `portcullis consents ${name}`),
      ...['create', 'list', 'show', 'lookup', 'update', 'rotate', 'revoke'].map(
        (name) => `portcullis api-keys ${name}`,
      ),
      'portcullis usage',
      ...['list', 'override', 'lift', 'reset'].map((name) => `portcullis limits ${name}`),
      ...['list', 'assign', 'remove'].map((name) => `portcullis plans ${name}`),
      ...['create', 'list', 'delete'].map((name) => `portcullis bans ${name}`),
      ...['write', 'delete', 'read', 'import', 'check', 'expand'].map(
        (name) => `portcullis relations ${name}`,
      ),
      'portcullis check',
      'portcullis expand',
      ...['query', 'tail', 'verify', 'erase', 'erasure'].map((name) => `portcullis audit ${name}`),
      'portcullis keys generate',
      'portcullis keys rotate',
      'portcullis keys list',
      'portcullis explain',
      'portcullis idp list',
      'portcullis idp show',
      'portcullis idp doctor',
      'portcullis signals connect',
      'portcullis signals disconnect',
      ...['check', 'test', 'matrix', 'diff', 'replay'].map((name) => `portcullis policy ${name}`),
      'portcullis deploy',
      'portcullis deploy rollback',
      'portcullis doctor',
      'portcullis openapi import',
      'portcullis mcp import',
      'portcullis mcp tools',
      'portcullis login',
      'portcullis logout',
      'portcullis whoami',
      'portcullis completion',
    ])
  })

  describe.each(leaves)('$path', ({ path, command }) => {
    const help = helpOf(command)

    test('describes every option and argument', () => {
      if (!SCRIPTS.includes(path))
        expect(command.options.map(({ long }) => long)).toContain('--json')
      for (const { flags, description, hidden } of command.options) {
        if (hidden) continue
        expect(help).toContain(flags)
        expect(description).not.toBe('')
      }
      const required = command.options.filter(({ mandatory }) => mandatory)
      expect(help.match(/\(required\)/g) ?? []).toHaveLength(required.length)
      for (const argument of command.registeredArguments) expect(help).toContain(argument.name())
    })

    test('has examples whose options all exist', () => {
      const examples = help.split('Examples:\n')[1]?.split('\n\n')[0]?.trimEnd().split('\n') ?? []
      expect(examples.length).toBeGreaterThan(0)
      const known = command.options.map(({ long }) => long)
      for (const example of examples) {
        expect(example).toMatch(new RegExp(`^ {2}(\\w+=\\$\\()?${path}( |$)`))
        expect(known).toEqual(expect.arrayContaining(example.match(/--[a-z-]+/g) ?? []))
      }
    })

    test('has no option for a secret, because every user of the machine sees the arguments', () => {
      const flags = command.options.map(({ long }) => long ?? '')
      // The value of `--key` is an id. A key is refused there.
      if (/^portcullis (?:usage|audit (?:query|tail))$/.test(path))
        flags.splice(flags.indexOf('--key'), 1)
      expect(flags.filter((flag) => /secret|password|token$|key$/.test(flag))).toEqual([])
    })
  })

  test('is printed on stdout with exit code 0', async () => {
    const { code, stdout, stderr } = await runCli(['audit', 'tail', '--help'])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toContain('until Ctrl-C')
  })

  test('of portcullis itself names the environment variables and the exit codes', async () => {
    const { code, stdout } = await runCli(['--help'])
    expect(code).toBe(0)
    for (const name of ['PORTCULLIS_URL', 'PORTCULLIS_CLIENT_ID', 'PORTCULLIS_CLIENT_SECRET'])
      expect(stdout).toContain(name)
    expect(stdout).toContain('Exit codes: 0 done, 1 refused')
    expect(stdout).toContain('3 no answer, or an answer that decides nothing')
  })

  test('of portcullis itself has the tasks of the guide', () => {
    const guide = readFileSync(join(ROOT, 'docs/console.md'), 'utf8')
    const table = guide.split('## Tasks')[1]?.split('\n\n')[1] ?? ''
    const tasks = [...table.matchAll(/`(portcullis [^`]+)`/g)].map(([, task = '']) => task)
    expect(tasks.length).toBeGreaterThan(4)
    const text = helpOf(createProgram())
    for (const task of tasks) expect(text).toContain(task)
  })

  test('of a command after `help` is that of the command', async () => {
    const { code, stdout } = await runHere(['help', 'limits', 'override'])
    expect({ code, first: stdout.split(' [')[0] }).toEqual({
      code: 0,
      first: 'Usage: portcullis limits override',
    })
  })

  test.each(groups.map((words) => [words.join(' '), words] as const))(
    'of an unknown command of "%s" is an error, and not the help of the others',
    async (_, words) => {
      for (const argv of [
        [...words, 'nothing', '--help'],
        ['help', ...words, 'nothing'],
      ]) {
        const { code, stdout, stderr } = await runHere(argv)
        expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
        expect(stderr).toContain("unknown command 'nothing'")
      }
    },
  )
})

test('--version prints the version of the package', async () => {
  const { code, stdout } = await runCli(['--version'])
  expect({ code, stdout }).toEqual({ code: 0, stdout: '0.1.0\n' })
})

test('commands are in groups, each with a heading', () => {
  const text = helpOf(createProgram())
  const headings = [...text.matchAll(/^([A-Z][\w ,]+):$/gm)].map(([, heading]) => heading)
  expect(headings.slice(1, -1)).toEqual([
    ...['Run a gateway', 'Callers and credentials', 'Limits, plans and bans', 'Relations'],
    ...['Audit trail', 'Keys and issuers', 'Policy', 'Command line', 'Environment'],
  ])
})

test.each([
  [['audit', 'query', '--decision', 'dney'], 'did you mean "deny"?'],
  [['bans', 'create', 'adress', '1', '--for', '1h'], 'did you mean "address"?'],
  [['idp', 'show', 'okt'], 'did you mean "okta"?'],
  [['adit'], 'audit'],
])('%j suggests a name', async (args, suggestion) => {
  const { code, stderr } = await runCli(args)
  expect(code).toBe(2)
  expect(stderr).toContain(suggestion)
})

test.each([
  ['token', 'sign', '--sub'],
  ['token', 'mint', '--sub'],
  ['explain', '--as'],
])(
  'the subject is --subject everywhere; the earlier name of %s %s is accepted, and not shown',
  async (...words) => {
    const earlier = words.pop() ?? ''
    const { stdout } = await runHere([...words, '--help'])
    expect(stdout).toContain('--subject <subject>')
    expect(stdout).not.toMatch(new RegExp(`${earlier}\\b(?!ject)`))
    const { stderr } = await runHere([...words, earlier, 'alice', '--no-such-option'])
    expect(stderr).toContain("unknown option '--no-such-option'")
  },
)

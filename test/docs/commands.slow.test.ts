/** Checks which commands the documents contain, and that those which are not run exist. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createProgram } from '../../cli/program.ts'
import { testInLong } from '../harness/long.ts'
import { ROOT } from '../harness/process.ts'
import { blocksOf, outlineOf } from './blocks.ts'
import { CONSOLES } from './consoles.ts'
import { commandsOf, DOCUMENTS, GUIDES, readDocument } from './documents.ts'
import { openTerminal, type Terminal } from './terminal.ts'

describe('documents', () => {
  test('with commands for a user are all in the list of guides', () => {
    // `test/create/` runs the commands of the templates, and `tutorial.slow.test.ts` those of the tutorial.
    const others =
      /^(CONTRIBUTING|bench\/README|docs\/index|docs\/tutorial)\.md$|^docs\/decisions\/|\/templates\//
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

describe('commands that are not run, because they need an account or an argument of yours,', () => {
  const consoles = DOCUMENTS.flatMap((path) => blocksOf(readDocument(path)))
    .filter(({ language }) => language === 'console')
    .flatMap(({ text }) => text.replaceAll('\\\n', ' ').split('\n'))
  let terminal: Terminal

  test('have each a reason, and a test with other values if there is one', () => {
    const startOf = (path: string, at: number, text: string) => {
      const [starts = 'no entry'] = CONSOLES[path]?.[at] ?? []
      return text.startsWith(starts) ? starts : text
    }
    const found = DOCUMENTS.flatMap((path) =>
      blocksOf(readDocument(path))
        .filter(({ language }) => language === 'console')
        .map(({ text }, at) => `${path}: ${startOf(path, at, text)}`),
    )
    const entries = Object.entries(CONSOLES).flatMap(([path, consoles]) =>
      consoles.map(([starts]) => `${path}: ${starts}`),
    )
    expect(found.sort()).toEqual(entries.sort())
    for (const [, , file] of Object.values(CONSOLES).flat())
      if (file !== undefined) expect(existsSync(join(ROOT, file)), file).toBe(true)
  })

  beforeAll(async () => {
    terminal = await openTerminal([], { CI: 'true', NO_COLOR: '1', WRANGLER_SEND_METRICS: 'false' })
  })

  afterAll(() => terminal?.close())

  testInLong('exist in wrangler', async () => {
    const wrangler = consoles.flatMap(
      (line) => /^npx wrangler ([a-z0-9]+(?: [a-z]+)?)/.exec(line)?.slice(1) ?? [],
    )
    expect(new Set(wrangler)).toEqual(new Set(['secret put', 'd1 execute', 'r2 object']))
    for (const command of new Set(wrangler)) {
      const { code, output } = await terminal.run(`npx wrangler ${command} --help`)
      expect(code).toBe(0)
      expect(output).toContain(`wrangler ${command}`)
    }
  })

  test('exist in package.json, or in that of a created project', () => {
    const manifests = ['', 'packages/create-portcullis/templates/gateway/']
    const scripts = manifests.flatMap((folder) =>
      Object.keys(JSON.parse(readDocument(`${folder}package.json`)).scripts),
    )
    const named = GUIDES.flatMap((guide) =>
      [...readDocument(guide).matchAll(/\bnpm run (?:-s )?([\w:-]+)/g)].map(
        ([, name = '']) => name,
      ),
    )
    expect(named).toContain('keys')
    expect([...new Set(named)].filter((name) => !scripts.includes(name))).toEqual([])
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
  const options = command.options.flatMap(({ long }) => long ?? [])
  // A mere group of commands has no such option.
  expect(options, `${line}: not a complete command`).toContain('--json')
  return { words, options }
}

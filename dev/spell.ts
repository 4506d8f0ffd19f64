/**
 * `npm run spell`: checks the spelling of sources and documents. cspell would read most words again and again, in another
 * file. So it reads each word once for all files of a kind that have the same settings, in a file with these settings.
 * Prints each unknown word with the first line that has it. Each list ends with a misspelled word: if cspell does not
 * report it, the settings or the words before it hide words from the check.
 */
import { spawnSync } from 'node:child_process'
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, extname, join, matchesGlob } from 'node:path'
import { ROOT } from './root.ts'

interface Override {
  readonly filename: string | readonly string[]
  readonly ignoreRegExpList?: readonly string[]
}

interface Settings {
  readonly files: string[]
  readonly ignorePaths: readonly string[]
  readonly dictionaryDefinitions: readonly { readonly name: string; readonly path: string }[]
  readonly patterns: readonly { readonly name: string; readonly pattern: string }[]
  readonly ignoreRegExpList: readonly string[]
  readonly overrides: readonly Override[]
}

/** The words of all files of a kind with the same settings. */
interface Group {
  /** The first of the files. */
  readonly path: string
  /** Each word, with its first place. */
  readonly words: Map<string, string>
}

const CONFIG = 'cspell.config.json'
const PROGRAM = join(ROOT, 'node_modules/cspell/bin.mjs')
const CACHE = join(ROOT, 'node_modules/.cache')
/** A word, with the signs that cspell reads as a part of it, or of an address that it ignores. */
const WORD = /[^\s(){}[\]<>;:,"`|!?*^~$=&/#%]+/g
/** A misspelled word. cspell would report it here too without the replacement. */
const MISSPELLED = 'misspelling'.replace('ss', 's')
/** A line of a report: path, line, column, and the message. */
const REPORT = /^(.+?):(\d+):\d+ - (.+)$/

const settings = JSON.parse(readFileSync(join(ROOT, CONFIG), 'utf8')) as Settings

/** Reports whether the path, or a folder of it, matches. */
const isAt = (path: string, glob: string): boolean =>
  path !== '.' && (matchesGlob(path, glob) || isAt(dirname(path), glob))

const isIn = (path: string, { filename }: Override): boolean =>
  [filename].flat().some((glob) => matchesGlob(path, glob))

/** Returns the expression with a name, or the one that a setting itself writes. */
function expressionOf(name: string): RegExp {
  const text = settings.patterns.find((pattern) => pattern.name === name)?.pattern ?? name
  const [, source = '', flags = ''] = /^\/(.*)\/(\w*)$/s.exec(text) ?? []
  return new RegExp(source, flags)
}

/** Replaces each part that the settings ignore by as many spaces. Such a part may contain spaces itself. */
function withoutIgnored(text: string, names: readonly string[]): string {
  let rest = text
  for (const name of names)
    for (const { 0: ignored, index } of text.matchAll(expressionOf(name))) {
      const spaces = ignored.replaceAll(/[^\n]/g, ' ')
      rest = rest.slice(0, index) + spaces + rest.slice(index + ignored.length)
    }
  return rest
}

/** Returns the groups of all files, by the path of the first one. */
function readGroups(): ReadonlyMap<string, Group> {
  const groups = new Map<string, Group>()
  const paths = globSync(settings.files, { cwd: ROOT })
    .filter((path) => !settings.ignorePaths.some((glob) => isAt(path, glob)))
    .sort()
  for (const path of paths) {
    const overrides = settings.overrides.filter((override) => isIn(path, override))
    const key = JSON.stringify([extname(path), overrides])
    const group = groups.get(key) ?? { path, words: new Map() }
    groups.set(key, group)
    const ignored = overrides.flatMap(({ ignoreRegExpList = [] }) => ignoreRegExpList)
    const text = readFileSync(join(ROOT, path), 'utf8')
    const lines = withoutIgnored(text, [...settings.ignoreRegExpList, ...ignored]).split('\n')
    for (const [at, line] of lines.entries())
      for (const [word] of line.matchAll(WORD))
        if (!group.words.has(word)) group.words.set(word, `${path}:${at + 1}`)
  }
  return new Map([...groups.values()].map((group) => [group.path, group]))
}

/** Writes the words to a folder, one a line, with the settings. */
function writeTo(folder: string, groups: ReadonlyMap<string, Group>): void {
  for (const [path, { words }] of groups) {
    mkdirSync(join(folder, dirname(path)), { recursive: true })
    writeFileSync(join(folder, path), [...words.keys(), MISSPELLED].join('\n'))
  }
  const dictionaryDefinitions = settings.dictionaryDefinitions.map((definition) => ({
    ...definition,
    path: join(ROOT, definition.path),
  }))
  const changes = {
    dictionaryDefinitions,
    files: ['**'],
    ignorePaths: [CONFIG],
    useGitignore: false,
  }
  writeFileSync(join(folder, CONFIG), JSON.stringify({ ...settings, ...changes }))
}

mkdirSync(CACHE, { recursive: true })
const folder = mkdtempSync(join(CACHE, 'spell-'))
try {
  const groups = readGroups()
  writeTo(folder, groups)
  const args = ['lint', '--no-progress', '--no-color', '--dot', '--config', CONFIG, '**']
  const { status, stdout, stderr } = spawnSync(process.execPath, [PROGRAM, ...args], {
    cwd: folder,
    encoding: 'utf8',
    maxBuffer: Number.POSITIVE_INFINITY,
  })
  let checked = 0
  let unknown = 0
  /** The lists with a report of their last word. */
  const ended = new Set<string>()
  for (const line of `${stdout}\n${stderr}`.split('\n').filter(Boolean)) {
    const [, path = '', at = '', message = ''] = REPORT.exec(line) ?? []
    const places = [...(groups.get(path)?.words.values() ?? [])]
    const place = places[Number(at) - 1]
    if (place !== undefined) {
      console.log(`${place} - ${message}`)
      unknown += 1
    } else if (Number(at) === places.length + 1) ended.add(path)
    else if (line.startsWith('CSpell: ')) checked = Number(/Files checked: (\d+)/.exec(line)?.[1])
    else console.log(line)
  }
  // Its own patterns of what it ignores decide which files it checks.
  if (checked !== groups.size)
    console.error(`spell: read ${checked} of ${groups.size} lists of words`)
  const hidden = [...groups.keys()].filter((path) => !ended.has(path))
  for (const path of hidden)
    console.error(`spell: words of ${path}, or of files with the same settings, are hidden`)
  // cspell exits with 1 if it reports words.
  if (status !== 1 || unknown > 0 || checked !== groups.size || hidden.length > 0)
    process.exitCode = 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}

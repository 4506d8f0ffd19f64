/**
 * Embeds Lua scripts: a TypeScript module in `src/redis/` exports their texts, and one in each folder those of features.
 * Texts that are alike compress well beside each other, and a bundler leaves out those that nothing uses.
 *
 * A line `--@include PATH`, before any code, puts that file in front, once for each script. A file
 * that another file includes is a library: scripts share its text. With a line `--@script`, it is a
 * script as well. A line `local NAME = VALUE
 * --@inline` declares a constant; its value is inserted where the name is used; `local NAME --@inline
 * PATH` takes the value from the export of a TypeScript module. Comments, indentation, line
 * breaks and spaces between tokens are removed, so a file must not contain text over several lines. Local
 * variables get short names: those that a file declares for the files that include it have the same ones everywhere.
 */
import { globSync, readFileSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { declaredIn, shortenNames, shortShared } from './short-names.ts'

/** The name of a generated module. */
const GENERATED = 'scripts.generated.ts'
/** The folder of the module with all scripts except those of features. */
const COMMON = 'redis'
const HEADER = '/** Generated from `.lua` files by `npm run lua`. Do not edit. */\n'

const SCRIPT = /^--@script$/m
const INCLUDE = /^--@include (\S+)$/gm
const INLINE = /^local ([A-Z][A-Z0-9_]*)(?: = (\S+))? --@inline(?: (\S+))?$/gm
/** Names that scripts do not declare: the libraries of Lua and Redis, and those of the generated model. */
export const GLOBALS = [
  'redis',
  'cjson',
  'KEYS',
  'ARGV',
  'types',
  'above',
  'places',
  'LOOK',
  'EXPAND',
]
// biome-ignore format: a table
const LIBRARIES = [
  'assert', 'error', 'ipairs', 'math', 'next', 'pairs', 'pcall', 'rawget', 'rawset', 'select', 'setmetatable',
  'string', 'table', 'tonumber', 'tostring', 'type', 'unpack',
]

const KEPT: ReadonlySet<string> = new Set([...GLOBALS, ...LIBRARIES])

/** Comments, strings and identifiers: a constant is replaced only where it is an identifier. */
const TOKEN = /--.*|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|[A-Za-z_]\w*/g

/** A string, which does not change, or spaces with the character before and the one after them. */
const SPACE = /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|(?<=(.))[ \t]+(?=(.))/g

/** Strings over several lines, and comments in long brackets. Their lines must not change. */
const LONG_TEXT = /\[=*\[|\\\n/

interface LuaFile {
  readonly path: string
  readonly source: string
  /** Paths of the included files. */
  readonly includes: readonly string[]
  /** Whether it is a script, even if another file includes it. */
  readonly isScript: boolean
}

/** The Lua files below a folder. */
export interface LuaFiles {
  /** Paths of the scripts, sorted. */
  readonly scripts: readonly string[]
  /** Returns a script with its includes as Lua source that a linter can check. */
  sourceOf(script: string): string
  /** Returns a script as it is embedded. With `keepsNames`, variables have the names of the source. */
  embeddedOf(script: string, keepsNames?: boolean): Promise<string>
  /** Returns the text of the generated module of each folder, by its path. */
  modules(): Promise<ReadonlyMap<string, string>>
}

/** Reads the Lua files below a folder. Throws an `Error` for a missing or unsuitable file. */
export function readLuaFiles(root: string): LuaFiles {
  const files = new Map(
    globSync('**/*.lua', { cwd: root })
      .sort()
      .map((name) => readLuaFile(join(root, name)))
      .map((file) => [file.path, file]),
  )
  const libraries = new Set([...files.values()].flatMap(({ includes }) => includes))

  const isScript = (path: string) => !libraries.has(path) || files.get(path)?.isScript === true

  function fileAt(path: string): LuaFile {
    const file = files.get(path)
    if (file === undefined) throw new Error(`${relative('', path)}: no such Lua file`)
    return file
  }

  /** Returns a file after all files that it includes, each once. */
  function withIncludes(path: string, found = new Set<LuaFile>()): Set<LuaFile> {
    const file = fileAt(path)
    for (const included of file.includes) withIncludes(included, found)
    return found.add(file)
  }

  async function textOf(path: string, keepsNames = false): Promise<string> {
    const constants = new Map<string, string>()
    for (const file of withIncludes(path))
      for (const [name, value] of await constantsOf(file)) constants.set(name, value)
    const text = fileAt(path)
      .source.replaceAll(INLINE, '')
      .replaceAll(TOKEN, (token) => (token.startsWith('--') ? '' : (constants.get(token) ?? token)))
      .replaceAll(/^[ \t]+|[ \t]+$/gm, '')
      .replaceAll(/^\n+|\n(?=\n)/g, '')
      // A space is more frequent, so it compresses better. The last line break stays: another text may follow.
      .replaceAll(/\n(?=.)/g, ' ')
    const lua = withoutSpaces(text)
    return keepsNames ? lua : shortenNames(lua, KEPT, sharedIn(path))
  }

  const plain = new Map([...files.values()].map((file) => [file, withoutComments(file.source)]))
  const namesIn = (file: LuaFile) =>
    [...declaredIn(plain.get(file) ?? '').outer].filter((name) => !KEPT.has(name))
  const sharing = [...files.values()].filter(({ path }) => libraries.has(path))
  const short = shortShared([...plain.values()], new Set(sharing.flatMap(namesIn)))

  /**
   * Returns the short names of the variables that a file shares with others: those of the files that it includes, and
   * all that it does not declare, because a file may use what only the scripts around it include.
   */
  function sharedIn(path: string): ReadonlyMap<string, string> {
    const included = [...withIncludes(path)].filter((file) => sharing.includes(file))
    const { outer, inner } = declaredIn(plain.get(fileAt(path)) ?? '')
    const others = new Set([...outer, ...inner])
    for (const name of included.flatMap(namesIn)) others.delete(name)
    return new Map([...short].filter(([name]) => !others.has(name)))
  }

  /** Returns the folder of the module with a file's text: its own in a feature, otherwise that of all scripts. */
  const folderOf = (path: string): string =>
    relative(root, path).startsWith('features') ? dirname(path) : join(root, COMMON)

  async function moduleOf(folder: string): Promise<string> {
    const own = [...files.keys()].filter((path) => folderOf(path) === folder)
    // A library must be declared before the texts that contain it.
    const ordered = new Set(own.flatMap((path) => [...withIncludes(path)].map((file) => file.path)))
    const imports = new Map<string, string[]>()
    const declarations: string[] = []
    for (const path of ordered) {
      if (folderOf(path) !== folder) {
        const from = relative(folder, join(folderOf(path), GENERATED))
        imports.set(from, [...(imports.get(from) ?? []), nameOf(path)])
        continue
      }
      const isLibrary = libraries.has(path)
      const text = JSON.stringify(await textOf(path))
      if (isLibrary) declarations.push(`export const ${nameOf(path)} = ${text}\n`)
      if (!isScript(path)) continue
      const before = [...withIncludes(path)].filter((file) => file.path !== path)
      const parts = [...before.map((file) => nameOf(file.path)), isLibrary ? nameOf(path) : text]
      // A bundler keeps unused template literals with values, because `toString` may have effects.
      const joined =
        parts.length === 1 ? parts[0] : `/* @__PURE__ */ [${parts.join(', ')}].join('')`
      declarations.push(`export const ${nameOf(path)}_SCRIPT = ${joined}\n`)
    }
    const lines = [...imports].map(
      ([from, names]) => `import { ${names.sort().join(', ')} } from '${from}'\n`,
    )
    return [HEADER, ...lines, ...declarations].join('')
  }

  return {
    scripts: [...files.keys()].filter(isScript),
    sourceOf: (script) => [...withIncludes(script)].map(({ source }) => source).join('\n'),
    async embeddedOf(script, keepsNames) {
      const paths = [...withIncludes(script)].map(({ path }) => path)
      return (await Promise.all(paths.map((path) => textOf(path, keepsNames)))).join('')
    },
    async modules() {
      const folders = [...new Set([...files.keys()].map(folderOf))]
      const texts = await Promise.all(folders.map(moduleOf))
      return new Map(folders.map((folder, at) => [join(folder, GENERATED), texts[at] ?? '']))
    },
  }
}

const withoutComments = (lua: string): string =>
  lua.replaceAll(TOKEN, (token) => (token.startsWith('--') ? '' : token))

/** Removes the spaces of Lua without comments, except where two tokens would become another one. */
export function withoutSpaces(lua: string): string {
  return lua.replaceAll(SPACE, (text, before: string | undefined, after: string | undefined) => {
    if (before === undefined || after === undefined) return text
    const isWord = /\w/.test(before)
    const isJoined = isWord ? /[\w.]/.test(after) : before === after && /[-.=[]/.test(before)
    return isJoined ? ' ' : ''
  })
}

function readLuaFile(path: string): LuaFile {
  const source = readFileSync(path, 'utf8')
  if (LONG_TEXT.test(source)) throw new Error(`${relative('', path)}: text over several lines`)
  const includes = [...source.matchAll(INCLUDE)].map(([, to = '']) => resolve(dirname(path), to))
  return { path, source, includes, isScript: SCRIPT.test(source) }
}

/** The name of a file's constant: `ADD_OWNER` for `add-owner.lua`. */
function nameOf(path: string): string {
  return basename(path, '.lua').replaceAll('-', '_').toUpperCase()
}

async function constantsOf({ path, source }: LuaFile): Promise<[name: string, value: string][]> {
  const constants: [string, string][] = []
  for (const [line, name = '', literal, module] of source.matchAll(INLINE)) {
    const value =
      module === undefined ? literal : await exported(resolve(dirname(path), module), name)
    if (value === undefined) throw new Error(`${relative('', path)}: no value: ${line}`)
    constants.push([name, value])
  }
  return constants
}

async function exported(module: string, name: string): Promise<string> {
  const value: unknown = (await import(pathToFileURL(module).href))[name]
  if (typeof value === 'number') return String(value)
  if (typeof value === 'string' && !/['\\\n]/.test(value)) return `'${value}'`
  throw new Error(`${relative('', module)}: exports no number or simple text ${name}`)
}

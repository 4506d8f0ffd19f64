/** Lua scripts: the generated modules are current, the scripts are valid Lua 5.1, keys are named once. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { GLOBALS, readLuaFiles, withoutSpaces } from '../../dev/lua/embed.ts'
import { shortenNames } from '../../dev/lua/short-names.ts'
import { isInstalled, ROOT } from '../harness/process.ts'
import { filesBelow } from './import-graph.ts'

const GENERATED = 'scripts.generated.ts'

const files = readLuaFiles(join(ROOT, 'src'))
const luac = ['luac5.1', 'luac'].find(isInstalled)

/**
 * A constant with a value from TypeScript is never set in Lua; a script may include a function that it
 * does not use; functions of one table have the same parameters; and a
 * local name may be that of an outer one.
 */
const IGNORED = ['221/[A-Z_]+', '211', '212', '431']

describe('Lua scripts', () => {
  test('the generated modules are current: `npm run lua` changes none', async () => {
    const modules = await files.modules()
    expect(modules.size).toBeGreaterThan(5)
    for (const [path, text] of modules)
      expect(readFileSync(path, 'utf8'), `${relative(ROOT, path)}: run npm run lua`).toBe(text)
    const generated = filesBelow(ROOT, 'src').filter((path) => path.endsWith(GENERATED))
    expect(generated).toEqual([...modules.keys()].map((path) => relative(ROOT, path)).sort())
  })

  test('no other module of src contains Lua', () => {
    const others = filesBelow(ROOT, 'src').filter((path) => !path.endsWith(GENERATED))
    const offenders = others.filter((path) =>
      /redis\.call\(|\bKEYS\[\d/.test(readFileSync(join(ROOT, path), 'utf8')),
    )
    expect(offenders).toEqual([])
  })

  test.skipIf(luac === undefined)('Lua 5.1 compiles each script', () => {
    for (const script of files.scripts)
      execFileSync(luac as string, ['-p', '-'], { input: files.sourceOf(script), stdio: 'pipe' })
  })

  test.skipIf(luac === undefined)('Lua 5.1 compiles each embedded script', async () => {
    const modules = [...(await files.modules()).keys()]
    const texts = await Promise.all(modules.map(async (path) => Object.entries(await import(path))))
    const scripts = texts.flat().filter(([name]) => name.endsWith('_SCRIPT'))
    expect(scripts.length).toBe(files.scripts.length)
    for (const [, input] of scripts)
      execFileSync(luac as string, ['-p', '-'], { input: input as string, stdio: 'pipe' })
  })

  test.each([
    ["local a = b .. 'x  =  y' .. 5 .. c", "local a=b ..'x  =  y'..5 ..c"],
    ['return 1 - -2, a [ [[b]] ]', 'return 1- -2,a[ [[b]]]'],
    ['if not (a == b) then return "a \\" b" end', 'if not(a==b)then return"a \\" b"end'],
  ])('spaces are removed only between tokens that stay apart: %s', (lua, expected) => {
    expect(withoutSpaces(lua)).toBe(expected)
  })

  test.skipIf(luac === undefined)('short names change no instruction of a script', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'portcullis-lua-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    /** Returns the bytecode of all scripts, without names of variables and numbers of lines. */
    async function compileAll(keepsNames: boolean): Promise<Buffer> {
      const texts = files.scripts.map((script) => files.embeddedOf(script, keepsNames))
      const inputs = (await Promise.all(texts)).map((text, at) => {
        const input = join(folder, `${at}.lua`)
        writeFileSync(input, text)
        return input
      })
      const output = join(folder, 'out')
      execFileSync(luac as string, ['-s', '-o', output, ...inputs], { stdio: 'pipe' })
      return readFileSync(output)
    }
    const [long, short] = [await compileAll(true), await compileAll(false)]
    expect(long.length).toBeGreaterThan(10_000)
    expect(short.equals(long)).toBe(true)
  })

  test.each([
    ['local long,b=1,2 return long+b', 'local a,b=1,2 return a+b'],
    ['local from={from=1,[2]=from,3}from.from=from', 'local a={from=1,[2]=a,3}a.from=a'],
    ["local name=KEYS[1]..'name'return name", "local a=KEYS[1]..'name'return a"],
    ['local function shared(key)return key end', 'local function shared(a)return a end'],
    ['for at,one in ipairs(all)do shared(at,one)end', 'for a,b in ipairs(all)do shared(a,b)end'],
    [
      'local t={f=function(x)local y=x,g y=1 end,x=2}',
      'local c={f=function(a)local b=a,g b=1 end,x=2}',
    ],
    ['local long=a', 'local b=a'],
  ])('only local variables get short names, and no field does: %s', (lua, expected) => {
    expect(shortenNames(lua, new Set(['shared', 'KEYS', 'ipairs']))).toBe(expected)
  })

  test.skipIf(!isInstalled('luacheck'))('luacheck finds no mistake in any script', () => {
    const folder = mkdtempSync(join(tmpdir(), 'portcullis-lua-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    // One process for all: its start takes longer than its checks.
    const copies = files.scripts.map((script) => {
      const copy = relative(ROOT, script).replaceAll('/', '_')
      writeFileSync(join(folder, copy), files.sourceOf(script))
      return copy
    })
    const args = ['--std', 'lua51', '--no-color', '--codes', '--no-max-line-length', '--quiet']
    const options = [...args, '--ignore', ...IGNORED, '--read-globals', ...GLOBALS]
    const { stdout, status } = spawnSync('luacheck', [...copies, ...options], { cwd: folder })
    expect([String(stdout), status]).toEqual([
      expect.stringContaining(`in ${copies.length} files`),
      0,
    ])
  })
})

test('names of Redis keys are in src/redis/keys.ts only', () => {
  const names = filesBelow(ROOT, 'src').filter(
    (path) => !path.endsWith(GENERATED) && /['"`]pc:/.test(readFileSync(join(ROOT, path), 'utf8')),
  )
  expect(names).toEqual(['src/redis/keys.ts'])
  for (const script of files.scripts) expect(files.sourceOf(script)).not.toMatch(/['"]pc:/)
})

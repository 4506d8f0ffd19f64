import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, matchesGlob } from 'node:path'
import { expect, test } from 'vitest'
import { FIRST, ONE_BY_ONE } from '../../dev/test-processes.ts'
import config from '../../vitest.config.ts'
import { FIELD_CASES } from '../field/table.ts'
import { ROOT } from '../harness/process.ts'
import { importsOf } from './import-graph.ts'

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')

/** The runs of vitest in `package.json`: the mode and the projects of each script. */
function runs() {
  const { scripts } = JSON.parse(read('package.json')) as {
    scripts: Record<string, string>
  }
  return Object.entries(scripts)
    .filter(([, command]) => command.startsWith('vitest run'))
    .map(([script, command]) => ({
      script,
      mode: /--mode (\w+)/.exec(command)?.[1] ?? 'test',
      projects: [...command.matchAll(/--project ([\w-]+)/g)].map(([, name = '']) => name),
    }))
}

interface Project {
  readonly test: {
    readonly name: string
    readonly include: readonly string[]
    readonly exclude?: readonly string[]
    readonly fileParallelism?: boolean
    readonly sequence?: { readonly groupOrder?: number }
  }
}

const projectsOf = (mode: string) =>
  config({ command: 'serve', mode }).test?.projects as readonly Project[]

const testFiles = readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.test.ts'))
  .map((path) => join('test', path))

/** Returns the files that projects run in a mode. */
function filesOf(mode: string, projects: readonly string[]): ReadonlySet<string> {
  const matches = (path: string, globs: readonly string[] = []) =>
    globs.some((glob) => matchesGlob(path, glob))
  const found = projectsOf(mode).filter(({ test: { name } }) => projects.includes(name))
  return new Set(
    testFiles.filter((path) =>
      found.some(
        ({ test: { include, exclude } }) => matches(path, include) && !matches(path, exclude),
      ),
    ),
  )
}

/** The processes of `npm run test:all`, which is what continuous integration runs. */
const processes = [FIRST, ...ONE_BY_ONE].map(({ project, mode = 'test' }) => ({
  project,
  files: filesOf(mode, [project]),
}))
const inEachRun = new Set(processes.flatMap(({ files }) => [...files]))
const projectsOfLong = runs().find(({ script }) => script === 'test:long')?.projects ?? []
const inLongRun = filesOf('long', projectsOfLong)

/** Whether a file, or a file of `test/` that it imports, does more in a long run. */
function doesMore(path: string, seen = new Set<string>()): boolean {
  if (seen.has(path)) return false
  seen.add(path)
  // A test may contain the text of a file that it writes, which imports others.
  const imported = importsOf(ROOT, path).filter(
    (one) => one.startsWith('test/') && existsSync(join(ROOT, one)),
  )
  return imported.some((one) => one === 'test/harness/long.ts' || doesMore(one, seen))
}

test('vitest starts each script: projects that run together have the same number of workers', () => {
  const all = runs()
  expect(all.map(({ script }) => script)).toEqual(['test', 'test:long'])
  for (const { script, mode, projects } of all) {
    const found = projectsOf(mode).filter(({ test: { name } }) => projects.includes(name))
    expect(found).toHaveLength(projects.length)
    const groups = new Map<number, boolean>()
    for (const { test: project } of found) {
      const order = project.sequence?.groupOrder ?? 0
      const isParallel = project.fileParallelism ?? true
      expect(groups.get(order) ?? isParallel, `${script}: ${project.name}`).toBe(isParallel)
      groups.set(order, isParallel)
    }
  }
})

test('each file of tests runs in continuous integration, or in npm run test:long', () => {
  expect(inEachRun.size).toBeGreaterThan(600)
  expect(testFiles.filter((path) => !inEachRun.has(path) && !inLongRun.has(path))).toEqual([])
})

test('npm run test:all runs each file of a project once', () => {
  const projects = projectsOf('test').map(({ test: { name } }) => name)
  expect([...new Set(processes.map(({ project }) => project))].sort()).toEqual(projects.sort())
  for (const name of projects) {
    const files = processes.filter(({ project }) => project === name).map((one) => [...one.files])
    expect(files.flat().sort(), name).toEqual([...filesOf('test', [name])].sort())
  }
})

test('npm run test:long runs each file that does more in it', () => {
  const using = testFiles.filter((path) => doesMore(path))
  expect(using.length).toBeGreaterThan(3)
  expect(using.filter((path) => !inLongRun.has(path))).toEqual([])
  // A file of several projects, such as one for each runtime, does more in each of them.
  for (const { project, files } of processes) {
    const more = using.filter((path) => files.has(path))
    const found = projectsOfLong.includes(project) ? filesOf('long', [project]) : new Set()
    expect(
      more.filter((path) => !found.has(path)),
      project,
    ).toEqual([])
  }
})

test('continuous integration runs a file of each row that docs/checklist.md calls proven', () => {
  const rows = read('docs/checklist.md')
    .split('\n')
    .filter((line) => /^\| [A-Z]\d/.test(line) && !line.includes('| not yet'))
    .map((line) => [...line.matchAll(/`(test\/[^`]+)`/g)].map(([, file = '']) => file))
  expect(rows.length).toBeGreaterThan(100)
  expect(rows.filter((files) => !files.some((file) => inEachRun.has(file)))).toEqual([])
})

test('continuous integration runs each test that is the proof of a case from the field', () => {
  const named = FIELD_CASES.flatMap(({ proof }) => ('tests' in proof ? proof.tests : []))
  expect(named.length).toBeGreaterThan(50)
  const onlyLong = named.filter((name) => {
    const [path = '', title = ''] = name.split(' > ')
    const [before = ''] = read(path).split(title)
    // The last test that begins before its title, and the last group that begins there and has not ended.
    const begun = [...before.matchAll(/\b(?:test|it)(InLong)?(?:\.\w+)*\(/g)].at(-1)
    const group =
      before
        .split(/\ndescribe/)
        .slice(1)
        .at(-1) ?? ''
    const isInLongGroup = group.startsWith('InLong') && !group.includes('\n})\n')
    return !inEachRun.has(path) || begun?.[1] !== undefined || isInLongGroup
  })
  expect(onlyLong).toEqual([])
})

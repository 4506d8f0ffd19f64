import { readdir, readFile } from 'node:fs/promises'
import { join, matchesGlob } from 'node:path'
import { expect, test } from 'vitest'
import config from '../../vitest.config.ts'
import { ROOT } from '../harness/process.ts'

/** The runs of vitest in `package.json`: the mode and the projects of each script. */
async function runs() {
  const { scripts } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>
  }
  return Object.entries(scripts)
    .filter(([, command]) => command.startsWith('vitest run'))
    .map(([script, command]) => ({
      script,
      mode: /--mode (\w+)/.exec(command)?.[1] ?? 'test',
      projects: [...command.matchAll(/--project ([\w-]+)/g)].map(([, name]) => name),
    }))
}

interface Project {
  readonly test: {
    readonly name: string
    readonly include: readonly string[]
    readonly fileParallelism?: boolean
    readonly sequence?: { readonly groupOrder?: number }
  }
}

const projectsOf = (mode: string) =>
  config({ command: 'serve', mode }).test?.projects as readonly Project[]

test('vitest starts each script: projects that run together have the same number of workers', async () => {
  const all = await runs()
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

test('npm run test:long runs each file that does more in it', async () => {
  const using: string[] = []
  for (const path of await readdir(join(ROOT, 'test'), { recursive: true })) {
    if (!path.endsWith('.test.ts')) continue
    const text = await readFile(join(ROOT, 'test', path), 'utf8')
    if (/from '[./]+harness\/long\.ts'/.test(text)) using.push(`test/${path}`)
  }
  expect(using.length).toBeGreaterThan(3)
  const included = projectsOf('long').flatMap(({ test: { include } }) => include)
  expect(using.filter((path) => !included.some((glob) => matchesGlob(path, glob)))).toEqual([])
})

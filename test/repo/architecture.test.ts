import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '../..')
const MAX_LINES = 200

/** From top to bottom; a file may import from its own layer and those below it. */
const LAYERS: readonly (readonly string[])[] = [
  ['workers/'],
  ['src/index.ts', 'src/index/'],
  ['src/app.ts', 'src/refuse-all.ts'],
  [
    'src/services.ts',
    'src/services/',
    'src/routes/',
    'src/middleware/',
    'src/problem.ts',
    'src/problem-of.ts',
    'src/problem-of-credential.ts',
    'src/problem-code.ts',
    'src/request-headers.ts',
    'src/response-headers.ts',
    'src/linger.ts',
    'src/rate-limit-headers.ts',
  ],
  [
    'src/policy.ts',
    'src/policy-definition.ts',
    'src/policy-mistakes.ts',
    'src/policy-relations.ts',
    'src/stores/',
    'src/authorization/',
    'src/context.ts',
  ],
  [
    'src/tokens/',
    'src/oauth/',
    'src/operators/',
    'src/inspection/',
    'src/admission/',
    'src/relations/',
    'src/audit/',
    'src/origin.ts',
    'src/origin/',
    'src/coalescing/',
    'src/metrics/',
    'src/tracing/',
  ],
  [
    'src/errors.ts',
    'src/timers.ts',
    'src/stamps.ts',
    'src/breakers/',
    'src/validators/',
    'src/config.ts',
  ],
]

function filesBelow(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => join(folder, path))
    .sort()
}

/** Files of the project that a file imports, types included. */
function importsOf(file: string): string[] {
  const source = readFileSync(join(root, file), 'utf8')
  return [...source.matchAll(/(?:from|import) '(\.[^']+)'/g)].map(([, specifier = '']) =>
    relative(root, resolve(root, dirname(file), specifier)),
  )
}

function layerOf(file: string): number {
  return LAYERS.findIndex((layer) =>
    layer.some((place) => (place.endsWith('/') ? file.startsWith(place) : file === place)),
  )
}

const sources = [...filesBelow('src'), ...filesBelow('workers')]

describe('the shape of the house', () => {
  test('the search finds the code', () => {
    expect(sources).toContain('src/app.ts')
    expect(importsOf('src/app.ts')).toContain('src/middleware/admit.ts')
  })

  test('every file has a place in the layers', () => {
    expect(sources.filter((file) => layerOf(file) === -1)).toEqual([])
  })

  test('imports point down only, types included', () => {
    const upwards = sources.flatMap((file) =>
      importsOf(file)
        .filter((imported) => layerOf(imported) < layerOf(file))
        .map((imported) => `${file} imports ${imported}`),
    )
    expect(upwards).toEqual([])
  })

  test('no file imports itself by way of others', () => {
    const cycles: string[] = []
    const done = new Set<string>()
    const visit = (file: string, path: readonly string[]): void => {
      if (path.includes(file)) cycles.push([...path.slice(path.indexOf(file)), file].join(' > '))
      if (done.has(file) || path.includes(file)) return
      for (const imported of importsOf(file)) visit(imported, [...path, file])
      done.add(file)
    }
    for (const file of sources) visit(file, [])
    expect(cycles).toEqual([])
  })

  test('only the composition root and the public surface name adapters', () => {
    const allowed = new Set(['src/services.ts', 'src/index.ts', 'src/index/relations.ts'])
    const offenders = sources.filter(
      (file) =>
        !allowed.has(file) &&
        !['src/services/', 'src/stores/', 'workers/'].some((place) => file.startsWith(place)) &&
        importsOf(file).some((imported) => imported.startsWith('src/stores/')),
    )
    expect(offenders).toEqual([])
  })

  test('what decides knows nothing of Hono, of Node or of Redis', () => {
    const pure = [
      'src/admission/',
      'src/authorization/',
      'src/audit/',
      'src/validators/',
      'src/relations/',
      'src/tokens/',
      'src/oauth/',
      'src/operators/',
      'src/inspection/',
      'src/metrics/',
      'src/tracing/',
    ]
    const offenders = sources.filter(
      (file) =>
        pure.some((place) => file.startsWith(place)) &&
        /from '(hono|node:|@upstash)/.test(readFileSync(join(root, file), 'utf8')),
    )
    expect(offenders).toEqual([])
  })

  test('nothing that ships needs Node', () => {
    const offenders = sources.filter((file) =>
      /from 'node:/.test(readFileSync(join(root, file), 'utf8')),
    )
    expect(offenders).toEqual([])
  })

  test('the command line knows the gateway by its API only', () => {
    const files = filesBelow('cli')
    expect(files.length).toBeGreaterThan(10)
    const allowed = (imported: string) => imported.startsWith('cli/') || imported === 'package.json'
    const others = files.flatMap((file) => importsOf(file).filter((path) => !allowed(path)))
    expect(others).toEqual([])
  })

  test(`no file is longer than ${MAX_LINES} lines`, () => {
    const code = [...sources, ...['cli', 'dev', 'bench'].flatMap(filesBelow)]
    const long = code
      .map((file) => [file, readFileSync(join(root, file), 'utf8').split('\n').length - 1] as const)
      .filter(([, lines]) => lines > MAX_LINES)
    expect(long).toEqual([])
  })

  test('zod is imported whole by namespace, or every locale is bundled', () => {
    const offenders = sources.filter((file) =>
      /import (type )?\{[^}]*\} from 'zod'/.test(readFileSync(join(root, file), 'utf8')),
    )
    expect(offenders).toEqual([])
  })
})

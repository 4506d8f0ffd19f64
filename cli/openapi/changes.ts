/** Compares two modules of imported routes. */

export interface Changes {
  readonly added: readonly string[]
  readonly removed: readonly string[]
  readonly changed: readonly string[]
}

export interface ModuleChanges {
  readonly routes: Changes
  readonly schemas: Changes
}

const ROW = /^ {2}\{(?:\n[\s\S]*?\n {2}\}| .*\}),$/gm
const METHOD_AND_PATH = /method: '(\w+)',\s+path: '((?:[^'\\]|\\.)+)'/
const CONSTANT = /^export const (\w+)(?:: z\.ZodMiniType)? = [\s\S]*?(?=\n\n|\n$)/gm

/** Returns what differs between two modules that {@link moduleText} wrote. */
export function changesBetween(before: string, after: string): ModuleChanges {
  return {
    routes: compared(routesIn(before), routesIn(after)),
    schemas: compared(constantsIn(before), constantsIn(after)),
  }
}

function routesIn(text: string): ReadonlyMap<string, string> {
  const start = text.indexOf('export const routes = [')
  const rows = start === -1 ? [] : [...text.slice(start).matchAll(ROW)]
  return new Map(
    rows.map(([row]) => {
      const [, method = '', path = ''] = METHOD_AND_PATH.exec(row) ?? []
      return [`${method} ${path}`, row]
    }),
  )
}

function constantsIn(text: string): ReadonlyMap<string, string> {
  const constants = [...text.matchAll(CONSTANT)].map(([code, name = '']) => [name, code] as const)
  return new Map(constants.filter(([name]) => name !== 'routes'))
}

function compared(
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
): Changes {
  return {
    added: [...after.keys()].filter((name) => !before.has(name)),
    removed: [...before.keys()].filter((name) => !after.has(name)),
    changed: [...after].flatMap(([name, code]) =>
      before.has(name) && before.get(name) !== code ? [name] : [],
    ),
  }
}

/** Writes changes as lines: `+ GET /orders`, `- GET /orders`, `~ GET /orders`. */
export function changeLines({ routes, schemas }: ModuleChanges): readonly string[] {
  return [routes, schemas].flatMap(({ added, removed, changed }, index) => {
    const what = index === 0 ? '' : 'schema '
    return [
      ...added.map((name) => `+ ${what}${name}`),
      ...removed.map((name) => `- ${what}${name}`),
      ...changed.map((name) => `~ ${what}${name}`),
    ]
  })
}

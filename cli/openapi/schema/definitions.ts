/** The constants of a module: shared schemas, and the inputs of routes. */
import { type Code, written } from '../code.ts'
import type { Document } from '../document.ts'
import { at, type Located } from '../located.ts'
import { createNames, pascal } from '../names.ts'
import type { Notes } from '../notes.ts'
import { schemaCode } from './code.ts'
import type { SchemaContext } from './context.ts'

/** One constant. */
export interface Definition {
  readonly name: string
  /** The complete statement. */
  readonly text: string
}

export interface Definitions extends SchemaContext {
  /** Returns the name of a constant with this code: a new one, or an equal one that exists. */
  constant(name: string, code: Code): Code
  /** Returns all constants so that each follows those that it uses. */
  all(): readonly Definition[]
  /** Names of the functions of `portcullis/openapi-routes` that are used. */
  helpers(): readonly string[]
}

interface Shared {
  readonly name: string
  readonly comment: string | undefined
  code: Code
  readonly uses: Set<Shared>
}

/** Marks the name of a constant in code, until it is known whether the constant comes later. */
const MARK = '\u0001'
const MARKED = new RegExp(`${MARK}(\\w+)${MARK}`, 'g')
/** Deeper schemas are not written by people: they are a mistake of a generator. */
const MAX_DEPTH = 40

export function createDefinitions(document: Document, notes: Notes): Definitions {
  const unused = createNames()
  const byTarget = new Map<string, Shared>()
  const byText = new Map<string, Shared>()
  const byName = new Map<string, Shared>()
  const order: Shared[] = []
  const helpers = new Set<string>()
  let current: Shared | undefined
  let depth = 0

  const context: Definitions = {
    document,
    notes,
    code(schema, place) {
      if (depth >= MAX_DEPTH) {
        document.coverage.useAll(schema)
        notes.unmapped(place, 'is nested too deeply, so any value is accepted')
        return `${context.use('json')}()`
      }
      depth += 1
      try {
        return schemaCode(context, schema, place)
      } finally {
        depth -= 1
      }
    },
    reference(schema, place) {
      const target = document.follow(schema)
      if (target === undefined) {
        const { $ref } = schema.value as { readonly $ref: string }
        document.coverage.useAll(at(schema, '$ref'))
        notes.unmapped(place, `the reference ${$ref} cannot be resolved, so any value is accepted`)
        return `${context.use('json')}()`
      }
      const shared = sharedFor(target)
      current?.uses.add(shared)
      return MARK + shared.name + MARK
    },
    use(name) {
      helpers.add(name)
      return name
    },
    constant(name, code) {
      const text = written(code)
      const known = byText.get(text)
      if (known !== undefined) return MARK + known.name + MARK
      const shared: Shared = { name: unused(name), comment: undefined, code, uses: new Set() }
      for (const [, used = ''] of text.matchAll(MARKED)) {
        const definition = byName.get(used)
        if (definition !== undefined) shared.uses.add(definition)
      }
      byText.set(text, shared)
      add(shared)
      return MARK + shared.name + MARK
    },
    all: () => statements(order),
    helpers: () => [...helpers].sort(),
  }

  function add(shared: Shared): void {
    byName.set(shared.name, shared)
    order.push(shared)
  }

  function sharedFor(target: Located): Shared {
    const key = `${target.file}#${target.pointer}`
    const known = byTarget.get(key)
    if (known !== undefined) return known
    const wanted = pascal(nameOf(target))
    const shared: Shared = {
      name: unused(wanted.charAt(0).toUpperCase() + wanted.slice(1)),
      comment: undefined,
      code: '',
      uses: new Set(),
    }
    byTarget.set(key, shared)
    add(shared)
    const [outer, outerDepth] = [current, depth]
    current = shared
    depth = 0
    shared.code = context.code(target, `#${target.pointer}`)
    current = outer
    depth = outerDepth
    return shared
  }

  return context
}

/** Returns the last part of a pointer, or the name of a file. */
function nameOf({ file, pointer }: Located): string {
  const path = pointer === '' ? (file.split('/').at(-1) ?? '').replace(/\.\w+$/, '') : pointer
  const parts = path.split('/')
  const last = parts.at(-1) ?? ''
  const isOfList = /^\d*$/.test(last) || /^(?:schema|items|properties)$/.test(last)
  return (isOfList ? parts.slice(-3).join('-') : last).replaceAll('~1', '-').replaceAll('~0', '-')
}

/** Writes constants in groups of constants that use each other, each after those that it uses. */
function statements(all: readonly Shared[]): readonly Definition[] {
  const groups = groupsOf(all)
  const groupOf = new Map(groups.flatMap((group, index) => group.map(({ name }) => [name, index])))
  return groups.flatMap((group, index) =>
    group.map((shared) => {
      const isCyclic = group.length > 1 || shared.uses.has(shared)
      const type = isCyclic ? ': z.ZodMiniType' : ''
      const start = `export const ${shared.name}${type} = `
      const code = written(shared.code, 0, start.length).replace(MARKED, (_, name: string) =>
        groupOf.get(name) === index && isCyclic ? `z.lazy(() => ${name})` : name,
      )
      return { name: shared.name, text: start + code }
    }),
  )
}

/** Replaces the marks in code of routes by the names. */
export const unmarked = (text: string): string => text.replace(MARKED, '$1')

/** Strongly connected components in the order of dependencies, without recursion. */
function groupsOf(all: readonly Shared[]): readonly Shared[][] {
  const indexes = new Map<Shared, number>()
  const lows = new Map<Shared, number>()
  const stack: Shared[] = []
  const onStack = new Set<Shared>()
  const groups: Shared[][] = []
  const open = (node: Shared) => {
    indexes.set(node, indexes.size)
    lows.set(node, indexes.size - 1)
    stack.push(node)
    onStack.add(node)
    return { node, rest: [...node.uses] }
  }
  const lower = (node: Shared, value: number | undefined) =>
    lows.set(node, Math.min(lows.get(node) ?? 0, value ?? 0))
  for (const root of all) {
    if (indexes.has(root)) continue
    const work = [open(root)]
    for (let frame = work.at(-1); frame !== undefined; frame = work.at(-1)) {
      const next = frame.rest.shift()
      if (next !== undefined) {
        if (!indexes.has(next)) work.push(open(next))
        else if (onStack.has(next)) lower(frame.node, indexes.get(next))
        continue
      }
      work.pop()
      const parent = work.at(-1)
      if (parent !== undefined) lower(parent.node, lows.get(frame.node))
      if (lows.get(frame.node) !== indexes.get(frame.node)) continue
      const group = stack.splice(stack.lastIndexOf(frame.node))
      for (const node of group) onStack.delete(node)
      groups.push(group.reverse())
    }
  }
  return groups
}

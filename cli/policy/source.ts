/** Finds the places of a policy in its source. It reads the source, and does not run it. */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import type { SyntaxNode, Tree } from '@lezer/common'
import { parser } from '@lezer/javascript'

const PARSER = parser.configure({ dialect: 'ts' })

interface Module {
  readonly file: string
  readonly text: string
  readonly tree: Tree
}

/** A piece of source code. */
interface Spot {
  readonly module: Module
  readonly node: SyntaxNode
}

/** A member of an object or array: where it is written, and its value. */
interface Member {
  readonly site: Spot
  readonly value: Spot
}

/** An element of an array. `value` is undefined for a spread of which the elements are not known. */
interface Element {
  readonly site: Spot
  readonly value: Spot | undefined
  /** The row that `override()` changes: it has the fields that `value` does not have. */
  readonly changed?: Element
}

export interface Place {
  /** Absolute path. */
  readonly file: string
  /** From 1. */
  readonly line: number
  readonly column: number
  /** Whether it is the place itself, not the nearest one that the source shows. */
  readonly isExact: boolean
}

export interface Wanted {
  /** Path in the definition: `['routes', 3, 'limits', 0]`. */
  readonly path: readonly (string | number)[]
  /** The route of the path, which helps if the row is not a literal at its index. */
  readonly route?: { readonly method: string; readonly path: string } | undefined
}

export interface Source {
  /** Returns the place, or the nearest one that the source shows. */
  placeOf(wanted: Wanted): Place
}

/**
 * Reads the policy in `file`. Constants are followed into other modules of the project. A row that code
 * creates is found by its method and path if these are literals. `routeCount` is the number of rows,
 * if it is known: it helps to find the rows below rows that code creates.
 */
export function readSource(file: string, routeCount?: number): Source {
  return sourceOf(file, 'definePolicy', routeCount)
}

/** Reads the default export of `file`, such as the table of a policy test. */
export function readTable(file: string): Source {
  return sourceOf(file, 'default export')
}

function sourceOf(
  file: string,
  of: 'definePolicy' | 'default export',
  routeCount?: number,
): Source {
  const modules = new Map<string, Module>()

  function moduleOf(path: string): Module {
    let module = modules.get(path)
    if (module === undefined) {
      const text = readFileSync(path, 'utf8')
      module = { file: path, text, tree: PARSER.parse(text) }
      modules.set(path, module)
    }
    return module
  }

  /** Follows names, parentheses and type assertions to the expression behind them. */
  function resolved(spot: Spot, depth = 0): Spot {
    const { module, node } = spot
    const inner = depth < MAX_DEPTH ? behind(node) : undefined
    if (inner !== undefined) return resolved({ module, node: inner }, depth + 1)
    if (node.name === 'VariableName' && depth < MAX_DEPTH) {
      const named = declared(module, textOf(spot), depth)
      if (named !== undefined) return resolved(named, depth + 1)
    }
    if (node.name === 'MemberExpression' && node.firstChild !== null) {
      const object = resolved({ module, node: node.firstChild }, depth + 1)
      const name = node.getChild('PropertyName')
      const member = name && memberOf(object, textOf({ module, node: name }))
      if (member) return resolved(member.value, depth + 1)
    }
    return spot
  }

  /** Returns the value of a constant of the module, or of one that it imports. */
  function declared(module: Module, name: string, depth: number): Spot | undefined {
    for (const statement of children(module.tree.topNode)) {
      const declaration =
        statement.name === 'ExportDeclaration'
          ? statement.getChild('VariableDeclaration')
          : statement
      if (declaration?.name === 'VariableDeclaration') {
        const value = initialValue(module, declaration, name)
        if (value !== undefined) return value
      }
      if (statement.name === 'ImportDeclaration') {
        const imported = importedAs(module, statement, name)
        const path = imported && importedFile(module, statement)
        if (imported !== undefined && path !== undefined)
          return exported(moduleOf(path), imported, depth + 1)
      }
    }
    return undefined
  }

  function exported(module: Module, name: string, depth: number): Spot | undefined {
    if (depth > MAX_DEPTH) return undefined
    if (name !== 'default') return declared(module, name, depth)
    const statement = children(module.tree.topNode).find(
      (one) => one.name === 'ExportDeclaration' && one.getChild('default') !== null,
    )
    const node =
      statement?.lastChild?.name === ';' ? statement.lastChild.prevSibling : statement?.lastChild
    return node ? { module, node } : undefined
  }

  /** Returns the last member of an object with this name. */
  function memberOf(spot: Spot, name: string): Member | undefined {
    const { module, node } = resolved(spot)
    if (node.name !== 'ObjectExpression') return undefined
    for (const property of node.getChildren('Property').reverse()) {
      const first = property.firstChild
      if (first === null) continue
      if (first.name === 'Spread') {
        const spread = first.nextSibling
        const member = spread && memberOf({ module, node: spread }, name)
        if (member) return member
      } else if (nameOf({ module, node: first }) === name) {
        const site = { module, node: property }
        const value = property.lastChild ?? first
        const isShorthand = property.getChild(':') === null && first.name === 'PropertyDefinition'
        if (!isShorthand) return { site, value: { module, node: value } }
        return { site, value: declared(module, name, 0) ?? { module, node: value } }
      }
    }
    return undefined
  }

  function elementsOf(spot: Spot, depth = 0): readonly Element[] | undefined {
    const { module, node } = resolved(spot)
    const rows = depth > MAX_DEPTH ? undefined : argumentOf('group', 1, { module, node })
    if (rows !== undefined) return elementsOf(rows, depth + 1)
    const issuers = depth > MAX_DEPTH ? undefined : argumentOf('defineIssuers', 0, { module, node })
    if (issuers !== undefined) return elementsOf(issuers, depth + 1)
    const generated = depth > MAX_DEPTH ? undefined : argumentOf('override', 0, { module, node })
    if (generated !== undefined)
      return overridden(
        elementsOf(generated, depth + 1),
        argumentOf('override', 1, { module, node }),
      )
    if (node.name !== 'ArrayExpression' || depth > MAX_DEPTH) return undefined
    const elements: Element[] = []
    for (let child = node.firstChild; child !== null; child = child.nextSibling) {
      if (/^[[\],]$|Comment$/.test(child.name)) continue
      if (child.name !== 'Spread') {
        const site = { module, node: child }
        elements.push({ site, value: site })
        continue
      }
      const site = { module, node: child }
      child = child.nextSibling
      if (child === null) break
      const spread = elementsOf({ module, node: child }, depth + 1)
      elements.push(...(spread ?? [{ site, value: undefined }]))
    }
    return elements
  }

  /** Applies the changes of `override()`, which removes rows and keeps the order of the others. */
  function overridden(
    rows: readonly Element[] | undefined,
    changes: Spot | undefined,
  ): readonly Element[] | undefined {
    if (changes === undefined || resolved(changes).node.name !== 'ObjectExpression')
      return undefined
    return rows?.flatMap((row) => {
      const method = row.value && textIn(row.value, 'method')
      const path = row.value && textIn(row.value, 'path')
      const change = memberOf(changes, `${method} ${path}`)
      if (change === undefined) return [row]
      const { node } = resolved(change.value)
      return node.name === 'null' ? [] : [{ ...change, changed: row }]
    })
  }

  /** Returns the text of a member that is a literal. */
  function textIn(spot: Spot, name: string): string | undefined {
    const value = memberOf(spot, name)?.value
    return value && literal(resolved(value))
  }

  /** Returns the element, or the spread that it probably comes from. */
  function elementAt(spot: Spot, index: number, count: number | undefined): Element | undefined {
    const elements = elementsOf(spot)
    const unknown = elements?.findIndex(({ value }) => value === undefined) ?? -1
    if (elements === undefined || unknown < 0 || index < unknown) return elements?.[index]
    const below = elements.slice(unknown + 1)
    const fromEnd = count === undefined ? undefined : below.at(index - count)
    const isBelow = count !== undefined && count - index <= below.length
    if (isBelow && below.every(({ value }) => value !== undefined)) return fromEnd
    return elements[unknown]
  }

  /** Returns the only object with this method and path, both as literals. */
  function rowOf({ method, path }: NonNullable<Wanted['route']>): Spot | undefined {
    const found: Spot[] = []
    for (const module of modules.values()) {
      module.tree.iterate({
        enter({ node }) {
          if (node.name !== 'ObjectExpression') return
          const spot = { module, node }
          if (textIn(spot, 'method') === method && textIn(spot, 'path') === path) found.push(spot)
        },
      })
    }
    return found.length === 1 ? found[0] : undefined
  }

  function definition(): Spot {
    const module = moduleOf(file)
    if (of === 'default export')
      return exported(module, 'default', 0) ?? { module, node: module.tree.topNode }
    let call: SyntaxNode | undefined
    module.tree.iterate({
      enter({ node }) {
        const callee = node.name === 'CallExpression' ? node.firstChild : null
        if (callee && textOf({ module, node: callee }) === 'definePolicy') call ??= node
      },
    })
    const argument = call?.getChild('ArgList')?.firstChild?.nextSibling
    return { module, node: argument ?? module.tree.topNode }
  }

  return {
    placeOf({ path, route }) {
      let site = definition()
      let value = site
      let isExact = true
      let changed: Element | undefined
      for (const [depth, part] of path.entries()) {
        const isRow = depth === 1 && path[0] === 'routes' && typeof part === 'number'
        const below = changed?.value
        const next: Element | Member | undefined =
          typeof part === 'number'
            ? elementAt(value, part, isRow ? routeCount : undefined)
            : (memberOf(value, part) ?? (below && memberOf(below, part)))
        changed = next !== undefined && 'changed' in next ? next.changed : undefined
        const row = isRow && next?.value === undefined && route ? rowOf(route) : undefined
        const found = row === undefined ? next : { site: row, value: row }
        if (found !== undefined) site = found.site
        if (found?.value === undefined) {
          isExact = false
          break
        }
        value = found.value
      }
      return { ...positionOf(site), isExact }
    },
  }
}

/** Ends cycles of constants. */
const MAX_DEPTH = 20

/** Returns an argument of a call of `group()`, `override()` or `defineIssuers()`, which keep the order of their rows. */
function argumentOf(name: string, index: number, { module, node }: Spot): Spot | undefined {
  const callee = node.name === 'CallExpression' ? node.firstChild : null
  if (callee === null || textOf({ module, node: callee }) !== name) return undefined
  const values = children(node.getChild('ArgList') ?? node).filter(
    ({ name }) => !/^[(),]$|Comment$/.test(name),
  )
  const value = values[index]
  return value === undefined ? undefined : { module, node: value }
}

const textOf = ({ module, node }: Spot) => module.text.slice(node.from, node.to)

function children(node: SyntaxNode): SyntaxNode[] {
  const found: SyntaxNode[] = []
  for (let child = node.firstChild; child !== null; child = child.nextSibling) found.push(child)
  return found
}

/** Returns the expression in parentheses, or before `as` or `satisfies`. */
function behind(node: SyntaxNode): SyntaxNode | undefined {
  if (node.name === 'ParenthesizedExpression') return node.firstChild?.nextSibling ?? undefined
  const isAssertion = node.getChild('as') !== null || node.getChild('satisfies') !== null
  if (node.name === 'BinaryExpression' && isAssertion) return node.firstChild ?? undefined
  return undefined
}

/** Returns the text of a string without interpolation. */
function literal(spot: Spot): string | undefined {
  const { name } = spot.node
  if (name !== 'String' && name !== 'TemplateString') return undefined
  if (spot.node.getChild('Interpolation') !== null) return undefined
  return textOf(spot).slice(1, -1).replace(/\\(.)/g, '$1')
}

const nameOf = (spot: Spot) => literal(spot) ?? textOf(spot)

function initialValue(module: Module, declaration: SyntaxNode, name: string): Spot | undefined {
  let isOurs = false
  for (const node of children(declaration)) {
    if (node.name === 'VariableDefinition') isOurs = textOf({ module, node }) === name
    const before = node.prevSibling?.name
    if (isOurs && before === 'Equals') return { module, node }
  }
  return undefined
}

/** Returns the name that a module exports and an import declaration calls `name`. */
function importedAs(module: Module, declaration: SyntaxNode, name: string): string | undefined {
  const own = declaration.getChild('VariableDefinition')
  if (own !== null && textOf({ module, node: own }) === name) return 'default'
  const group = declaration.getChild('ImportGroup')
  const local = group
    ?.getChildren('VariableDefinition')
    .find((node) => textOf({ module, node }) === name)
  if (!local) return undefined
  const before = local.prevSibling
  const original = before?.name === 'as' ? before.prevSibling : null
  return original ? textOf({ module, node: original }) : name
}

/** Returns the file of an import of the project. Undefined for packages, and for JSON. */
function importedFile(module: Module, declaration: SyntaxNode): string | undefined {
  const node = declaration.getChild('String')
  const specifier = node ? literal({ module, node }) : undefined
  if (!specifier?.startsWith('.')) return undefined
  const path = resolve(dirname(module.file), specifier)
  return [path, `${path}.ts`, `${path}.js`].find(
    (candidate) => /\.[cm]?[jt]s$/.test(candidate) && existsSync(candidate),
  )
}

function positionOf({ module, node }: Spot): Omit<Place, 'isExact'> {
  const before = module.text.slice(0, node.from)
  const line = before.split('\n').length
  return { file: module.file, line, column: node.from - before.lastIndexOf('\n') }
}

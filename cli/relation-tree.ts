/** Formats relation trees of the gateway's responses as lines of text. */
import { visible } from './text.ts'

/** One step of a decision, as in the gateway's response. */
export interface TraceStep {
  readonly rule: string
  readonly node: string
  readonly tuple?: string
  readonly note?: string
  readonly outcome: string
  readonly why?: string
  readonly steps: readonly TraceStep[]
}

interface Named {
  readonly userset: string
}

/** A node of an expanded relation, in OpenFGA's format. */
export interface UsersetNode {
  readonly name: string
  readonly leaf?: {
    readonly users?: { readonly users: readonly string[]; readonly hasMore?: boolean }
    readonly computed?: Named
    readonly tupleToUserset?: {
      readonly tupleset: string
      readonly computed: readonly Named[]
      readonly hasMore?: boolean
    }
  }
  readonly union?: { readonly nodes: readonly UsersetNode[] }
  readonly intersection?: { readonly nodes: readonly UsersetNode[] }
  readonly difference?: { readonly base: UsersetNode; readonly subtract: UsersetNode }
}

const INDENT = '  '
const MORE = 'and more'
const indented = (lines: readonly string[]) => lines.map((line) => INDENT + line)

/** Returns one line for each step, indented below its parent step. */
export function traceLines({ outcome, why, rule, node, tuple, note, steps }: TraceStep): string[] {
  const parts = [
    outcome,
    why && `(${why})`,
    rule,
    node,
    tuple && `by ${tuple}`,
    note && `[${note}]`,
  ]
  const line = visible(parts.filter((part) => part !== undefined).join(' '))
  return [line, ...indented(steps.flatMap(traceLines))]
}

/** Returns one line for each part of the relation. */
export function expansionLines(root: UsersetNode): string[] {
  return [visible(root.name), ...indented(partLines(root))]
}

function partLines({ leaf, union, intersection, difference }: UsersetNode): string[] {
  if (union !== undefined) return ['any of', ...indented(union.nodes.flatMap(partLines))]
  if (intersection !== undefined)
    return ['all of', ...indented(intersection.nodes.flatMap(partLines))]
  if (difference !== undefined)
    return [...partLines(difference.base), 'but not', ...indented(partLines(difference.subtract))]
  const { users, computed, tupleToUserset } = leaf ?? {}
  if (users !== undefined) return ['tuples', ...indented(members(users.users, users.hasMore))]
  if (computed !== undefined) return [visible(computed.userset)]
  if (tupleToUserset === undefined) return []
  const names = tupleToUserset.computed.map(({ userset }) => userset)
  const heading = `from ${visible(tupleToUserset.tupleset)}`
  return [heading, ...indented(members(names, tupleToUserset.hasMore))]
}

function members(names: readonly string[], hasMore = false): string[] {
  if (names.length === 0) return ['no subject']
  return [...names.map(visible), ...(hasMore ? [MORE] : [])]
}

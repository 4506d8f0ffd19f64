/** Finds the subjects that have a relation to an object. */
import * as z from 'zod/mini'
import type { Desk } from './page.ts'

/** A node of OpenFGA's `expand`. */
export interface Tree {
  readonly leaf?: {
    readonly users?: { readonly users: readonly string[]; readonly hasMore?: boolean }
    readonly computed?: { readonly userset: string }
    readonly tupleToUserset?: {
      readonly computed: readonly { readonly userset: string }[]
      readonly hasMore?: boolean
    }
  }
  readonly union?: { readonly nodes: readonly Tree[] }
  readonly intersection?: { readonly nodes: readonly Tree[] }
  readonly difference?: { readonly base: Tree; readonly subtract: Tree }
}

/** The tree is the gateway's own. */
export const treeSchema = z.object({ tree: z.object({ root: z.custom<Tree>() }) })

const MAX_SETS = 20
const MAX_SUBJECTS = 50
const checked = z.object({ allowed: z.boolean() })

/**
 * Collects the subjects that a relation may include, and checks each of them: so intersections and exclusions
 * are decided by the check, as for a request.
 */
export async function findSubjects(
  desk: Desk,
  {
    object,
    relation,
    tenant,
  }: Record<'object' | 'relation', string> & { readonly tenant: string | undefined },
) {
  const within = tenant === undefined || tenant === '' ? {} : { tenant }
  const sets = new Set([`${object}#${relation}`])
  const candidates = new Set<string>()
  let isComplete = true
  for (const set of sets) {
    if (sets.size > MAX_SETS) isComplete = false
    const at = set.lastIndexOf('#')
    const body = { object: set.slice(0, at), relation: set.slice(at + 1), ...within }
    const { tree } = z.parse(treeSchema, await desk.act('expandRelation', { body }))
    const { subjects, hasMore } = leavesOf(tree.root)
    if (hasMore) isComplete = false
    for (const subject of subjects)
      if (subject.includes('#')) {
        if (sets.size < MAX_SETS) sets.add(subject)
        else if (!sets.has(subject)) isComplete = false
      } else if (candidates.size < MAX_SUBJECTS) candidates.add(subject)
      else if (!candidates.has(subject)) isComplete = false
  }
  const found = await Promise.all(
    [...candidates].map(async (subject) => {
      const body = { object, relation, subject, ...within }
      const { allowed } = z.parse(checked, await desk.act('checkRelation', { body }))
      return allowed ? [subject] : []
    }),
  )
  return {
    subjects: found.flat(),
    /** False: there may be more. */
    isComplete,
  }
}

/** Returns the subjects and sets that a tree names, except those that it excludes. */
function leavesOf(tree: Tree): { readonly subjects: readonly string[]; readonly hasMore: boolean } {
  const { leaf, union, intersection, difference } = tree
  const nodes = union?.nodes ?? intersection?.nodes ?? (difference ? [difference.base] : [])
  const inner = nodes.map(leavesOf)
  return {
    subjects: [
      ...inner.flatMap(({ subjects }) => subjects),
      ...(leaf?.users?.users ?? []),
      ...(leaf?.computed === undefined ? [] : [leaf.computed.userset]),
      ...(leaf?.tupleToUserset?.computed.map(({ userset }) => userset) ?? []),
    ],
    hasMore:
      inner.some(({ hasMore }) => hasMore) ||
      leaf?.users?.hasMore === true ||
      leaf?.tupleToUserset?.hasMore === true,
  }
}

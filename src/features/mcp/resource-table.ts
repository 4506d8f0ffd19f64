/** The table of the resources of an MCP server: which entries decide about a URI. */
import type { McpAccess } from './definition.ts'
import {
  foldedUri,
  isNormalTemplate,
  isNormalUri,
  literalOf,
  withoutExpressions,
} from './resource-uri.ts'

export type NamedResource = 'resource' | 'template'

/** Entries of which the caller needs every permission. Empty: the table does not permit the URI. */
type Decision = readonly McpAccess[]

/** The end of all others. */
const OTHERS = '*'

interface Row {
  readonly access: McpAccess
  /** Without the `*`. */
  readonly text: string
  readonly folded: string
  readonly isPrefix: boolean
}

/**
 * Creates the look-ups. The longest entry decides that a URI begins with, or equals. In the same way,
 * a longer entry decides if its URI differs only in what servers may read as equal: a query or a
 * fragment behind it, a slash at its end, the case, an encoding. So a shorter entry, such as `*`, does
 * not permit another spelling of what a longer one protects. A table with `*` alone permits all URIs in
 * any form.
 */
export function createResourceTable(table: Readonly<Record<string, true | McpAccess>> = {}) {
  const rows = Object.entries(table).map(([pattern, entry]): Row => {
    const isPrefix = pattern.endsWith(OTHERS)
    const text = isPrefix ? pattern.slice(0, -OTHERS.length) : pattern
    const access = entry === true ? {} : entry
    return { access, text, folded: foldedUri(text, isPrefix), isPrefix }
  })
  const needsForm = rows.some(({ text }) => text !== '')
  /** Longer entries first; of equal length, an entry without `*` first. */
  const byLength = rows.toSorted(
    (one, other) =>
      other.folded.length - one.folded.length || Number(one.isPrefix) - Number(other.isPrefix),
  )
  const exact = new Map(rows.flatMap((row) => (row.isPrefix ? [] : [[row.text, row] as const])))

  function decideUri(uri: string): Decision {
    const own =
      exact.get(uri) ?? byLength.find(({ isPrefix, text }) => isPrefix && uri.startsWith(text))
    if (own === undefined) return []
    if (!own.isPrefix) return [own.access]
    const readings = listReadings(uri)
    const covering = rows.filter((row) => coversOneOf(row, readings))
    const same = covering.filter((row) => isSame(row, readings))
    if (same.length > 0) return accessOf([...(own.text === '' ? [] : [own]), ...same])
    const longer = covering.filter((row) => rank(row) > rank(own))
    // `file:///docs` may be the folder of `file:///docs/*`, unless an entry has it.
    const isListed = longer.some(({ isPrefix }) => !isPrefix)
    const others = longer.filter((row) => !isListed || beginsOneOf(row, readings))
    const longest = Math.max(...others.map(rank))
    return others.length === 0
      ? [own.access]
      : accessOf(others.filter((row) => rank(row) === longest))
  }

  function isNormal(what: NamedResource, uri: string): boolean {
    return !needsForm || (what === 'template' ? isNormalTemplate(uri) : isNormalUri(uri))
  }

  function entriesOf(what: NamedResource, uri: string): Decision {
    if (!isNormal(what, uri)) return []
    const own = decideUri(uri)
    // The names in a template may be empty.
    const shortest = what === 'template' ? withoutExpressions(uri) : uri
    return own.length === 0 || shortest === uri ? own : [...own, ...decideUri(shortest)]
  }

  return {
    /** Reports whether a URI, or a template, is in its normal form, or the table needs none. */
    isNormal,
    /** Returns the entries for a URI, or for a template as a list shows it. */
    entriesOf,
    /** As `entriesOf`, for the names with which a server would complete the template. */
    entriesOfNames(template: string): Decision {
      const own = entriesOf('template', template)
      if (own.length === 0) return own
      const begin = foldedUri(literalOf(template), true)
      const below = rows.filter(({ folded }) => folded !== begin && folded.startsWith(begin))
      return [...own, ...below.map(({ access }) => access)]
    },
  }
}

const accessOf = (rows: readonly Row[]): Decision => rows.map(({ access }) => access)

const rank = ({ folded, isPrefix }: Row): number => 2 * folded.length + Number(!isPrefix)

/** Reports whether an entry has this URI, but for a slash at its end. */
const isSame = ({ folded, isPrefix }: Row, { whole }: Readings): boolean =>
  !isPrefix && whole.some((text) => withoutSlash(text) === withoutSlash(folded))

const withoutSlash = (text: string): string => text.replace(/\/$/, '')

type Readings = ReturnType<typeof listReadings>

function listReadings(uri: string) {
  const folded = foldedUri(uri)
  return {
    /** With and without the fragment. */
    whole: [folded, folded.replace(/#.*$/s, '')],
    /** Without query, fragment, and slash at the end. */
    bare: withoutSlash(folded.replace(/[?#].*$/s, '')),
  }
}

const beginsOneOf = ({ folded, isPrefix }: Row, { whole }: Readings): boolean =>
  !isPrefix || whole.some((text) => text.startsWith(folded))

function coversOneOf(row: Row, readings: Readings): boolean {
  const { folded, isPrefix } = row
  const { whole, bare } = readings
  if (isPrefix) return beginsOneOf(row, readings) || `${bare}/`.startsWith(folded)
  return whole.includes(folded) || bare === withoutSlash(folded)
}

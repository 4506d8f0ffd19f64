/** The mistakes that `definePolicy` reports, as findings. */
import type { Misconfigured } from '../../src/errors.ts'
import type { Finding } from './finding.ts'

export const INVALID = 'invalid-policy'

/** `routes[0].limits`, or `roles["a b"]`, at the beginning of a message. */
const PLACE = /^([a-zA-Z_$][\w$]*(?:\.[\w$]+|\[\d+\]|\["(?:[^"\\]|\\.)*"\])*): /
const PART = /\.?([\w$]+)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]/gy
/** `GET /orders: `, at the beginning of a message about a route. */
const ROUTE = /^[A-Z]+ [^\s/]*\/\S*: /

/** Returns one finding for each mistake. */
export function findingsOf({
  mistakes,
  rows,
}: Pick<Misconfigured, 'mistakes' | 'rows'>): Finding[] {
  return mistakes.map((message, at) => {
    const row = rows[at]
    const path =
      row !== undefined && ROUTE.test(message)
        ? ['routes', row, ...fieldNamed(message.replace(ROUTE, ''))]
        : pathIn(message)
    return { rule: INVALID, severity: 'error', path, message }
  })
}

/** Returns the path that a message begins with. */
function pathIn(message: string): (string | number)[] {
  const [, place = ''] = PLACE.exec(message) ?? []
  return [...place.matchAll(PART)].map(([, name, index, quoted]) => {
    if (index !== undefined) return Number(index)
    return quoted === undefined ? (name ?? '') : (JSON.parse(quoted) as string)
  })
}

/** Returns the field of a route that a message is about. */
function fieldNamed(text: string): (string | number)[] {
  const [, field] = /^(coalesce|cors|relation|input\.\w+|inspect\.jsonRpc)\b/.exec(text) ?? []
  if (field !== undefined) return field.split('.')
  const [, named] = /^([a-z]\w*): /i.exec(text) ?? []
  if (named !== undefined) return [named]
  return /^unknown limit |to limit \S+ by$/.test(text) ? ['limits'] : ['path']
}

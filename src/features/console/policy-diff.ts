/** Compares two effective policies. Pure: no I/O. */
import type { PolicyView } from './policy-view.ts'

type Route = PolicyView['routes'][number]

const nameOf = ({ method, host, path }: Route): string => `${method} ${host ?? ''}${path}`
const rightOf = ({ permission }: Route): string => permission ?? 'anonymous'
const sizeOf = ({ limit, windowSeconds }: PolicyView['limits'][number]): string =>
  `${limit} in ${windowSeconds} s`

/** Returns a line for each difference. Empty: operators see no difference. */
export function diffPolicies(before: PolicyView, after: PolicyView): readonly string[] {
  const lines = compare(byName(before.routes, nameOf), byName(after.routes, nameOf), {
    what: 'route',
    textOf: (route) => [rightOf(route), ...route.limits].join(', '),
  })
  const roles = [before, after].map((one) => byName(one.roles, ({ name }) => name))
  for (const name of new Set(roles.flatMap((each) => [...each.keys()]))) {
    const [was, is] = roles.map((each) => new Set(each.get(name)?.permissions))
    for (const one of is ?? []) if (!was?.has(one)) lines.push(`role ${name} gains ${one}`)
    for (const one of was ?? []) if (!is?.has(one)) lines.push(`role ${name} loses ${one}`)
  }
  const limits = [before, after].map((one) => byName(one.limits, ({ name }) => name))
  lines.push(
    ...compare(limits[0] ?? new Map(), limits[1] ?? new Map(), { what: 'limit', textOf: sizeOf }),
  )
  const features = [before, after].map((one) => byName(one.features, (name) => name))
  lines.push(
    ...compare(features[0] ?? new Map(), features[1] ?? new Map(), {
      what: 'feature',
      textOf: () => '',
    }),
  )
  return lines
}

const byName = <Item>(items: readonly Item[], name: (item: Item) => string) =>
  new Map(items.map((item) => [name(item), item]))

interface Words<Item> {
  readonly what: string
  textOf(item: Item): string
}

function compare<Item>(
  before: ReadonlyMap<string, Item>,
  after: ReadonlyMap<string, Item>,
  { what, textOf }: Words<Item>,
): string[] {
  const lines: string[] = []
  for (const [name, item] of after) {
    const old = before.get(name)
    const text = textOf(item)
    if (old === undefined) lines.push(`${what} ${name} is new${text && `: ${text}`}`)
    else if (textOf(old) !== text) lines.push(`${what} ${name}: ${text}, was ${textOf(old)}`)
  }
  for (const name of before.keys()) if (!after.has(name)) lines.push(`${what} ${name} is gone`)
  return lines
}

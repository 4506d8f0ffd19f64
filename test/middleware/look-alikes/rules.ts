/**
 * Rules by which servers that npm does not provide map a path to a handler, from their
 * documentation or source. They share no code with the gateway.
 */

/** The path interpretation of a server. */
export interface Rule {
  readonly name: string
  /** Returns the segment lists that a raw path may be read as. */
  read(path: string): readonly string[][]
  /** Reports whether a decoded segment matches a name of the server. */
  isSame(segment: string, literal: string): boolean
}

const split = (path: string) => path.slice(1).split('/')
const decoded = (path: string) =>
  split(path).map((segment) => {
    try {
      return decodeURIComponent(segment)
    } catch {
      return segment
    }
  })
const withoutLast = (segments: readonly string[]) => segments.slice(0, -1)
const exact = (segment: string, literal: string) => segment === literal
const ignoringCase = (segment: string, literal: string) =>
  segment.toLowerCase() === literal.toLowerCase()
const ignorable = /[\u00ad\u200b-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g

/**
 * Spring MVC 5: removes `;` parameters, trims segments, drops empty ones, ignores suffix and final
 * slash.
 */
const spring: Rule = {
  name: 'Spring MVC 5 (model)',
  read: (path) => {
    const segments = split(path.replace(/;[^/]*/g, ''))
      .map((segment) => decodeURIComponent(segment).trim())
      .filter((segment) => segment !== '')
    const stem = segments.at(-1)?.replace(/\..*$/, '') ?? ''
    return [segments, [...withoutLast(segments), stem]]
  },
  isSame: exact,
}

/** ASP.NET: ignores case, removes sessions from the path; `Index` is the default action. */
const aspNet: Rule = {
  name: 'ASP.NET MVC (model)',
  read: (path) => {
    const segments = decoded(path.replace(/\/\([A-Z]\([^/]*\)\)/gi, '')).filter((s) => s !== '')
    return segments.at(-1)?.toLowerCase() === 'index'
      ? [segments, withoutLast(segments)]
      : [segments]
  },
  isSame: ignoringCase,
}

/** IIS and other servers of files on NTFS. */
const windows: Rule = {
  name: 'IIS, files on NTFS (model)',
  read: (path) => {
    const segments = decoded(path)
      .map((segment) => segment.replace(/:.*$/, '').replace(/[. ]+$/, ''))
      .filter((segment) => segment !== '')
    const isDefault = /^(?:default|index)\.\w+$/i.test(segments.at(-1) ?? '')
    return isDefault ? [segments, withoutLast(segments)] : [segments]
  },
  isSame: (segment, literal) =>
    ignoringCase(segment, literal) ||
    (literal.length > 8 && ignoringCase(segment, `${literal.slice(0, 6)}~1`)),
}

/**
 * A PHP script on Windows: names pass through the code page, which has best fits for other letters.
 */
const bestFit: Rule = {
  name: 'PHP on Windows, best fit (model)',
  read: (path) => [
    decoded(path).map((segment) =>
      segment
        .normalize('NFKD')
        .replace(/\p{M}/gu, '')
        .replace(/\u0131/g, 'i')
        .replace(/[. ]+$/, ''),
    ),
  ],
  isSame: ignoringCase,
}

/** Files on HFS+: case, ignorable characters and Unicode forms make no difference. */
const hfs: Rule = {
  name: 'nginx alias, files on HFS+ (model)',
  read: (path) => {
    const segments = decoded(path)
      .map((segment) => segment.normalize('NFD').replace(ignorable, ''))
      .filter((segment) => segment !== '')
    return segments.at(-1) === 'index.html' ? [segments, withoutLast(segments)] : [segments]
  },
  isSame: (segment, literal) =>
    segment.toUpperCase().toLowerCase() === literal.toUpperCase().toLowerCase(),
}

/**
 * nginx with `index` and PHP: slashes merged, scripts with PATH_INFO, `try_files $uri $uri.php`.
 */
const nginx: Rule = {
  name: 'nginx and PHP, try_files (model)',
  read: (path) => {
    const segments = decoded(path).filter((segment) => segment !== '')
    const script = segments.findIndex((segment) => segment.endsWith('.php'))
    const readings = [segments]
    if (script !== -1) {
      const called = segments.slice(0, script + 1)
      readings.push(called)
      readings.push([...withoutLast(called), called.at(-1)?.replace(/\.php$/, '') ?? ''])
    }
    if (/^index\.\w+$/.test(segments.at(-1) ?? '')) readings.push(withoutLast(segments))
    return readings
  },
  isSame: exact,
}

/** Rails: a trailing slash and `.:format` are optional. */
const rails: Rule = {
  name: 'Rails (model)',
  read: (path) => {
    const segments = decoded(path.replace(/\/+/g, '/').replace(/\/$/, ''))
    return [segments, [...withoutLast(segments), segments.at(-1)?.replace(/\.[^.]+$/, '') ?? '']]
  },
  isSame: exact,
}

/** A hand-written router in PHP: `explode('/', trim(urldecode($uri), '/ '))`. */
const phpRouter: Rule = {
  name: 'urldecode and trim (model)',
  read: (path) => [
    decodeURIComponent(path.replaceAll('+', '%20'))
      .split('/')
      .map((segment) => segment.trim())
      .filter((segment) => segment !== ''),
  ],
  isSame: exact,
}

/** Go 1.22: exact, by segments that are decoded once. */
const serveMux: Rule = {
  name: 'Go ServeMux (model)',
  read: (path) => [decoded(path)],
  isSame: exact,
}

/** A server that decodes until nothing changes. */
const decodesTwice: Rule = {
  name: 'two decoders in a row (model)',
  read: (path) => [decoded(`/${decoded(path).join('/')}`)],
  isSame: exact,
}

export const RULES: readonly Rule[] = [
  spring,
  aspNet,
  windows,
  bestFit,
  hfs,
  nginx,
  rails,
  phpRouter,
  serveMux,
  decodesTwice,
]

/**
 * Reports whether a server with this rule matches a path to a pattern of literals, `:params` and a
 * last `*`.
 */
export function matches(rule: Rule, pattern: string, path: string): boolean {
  const names = split(pattern)
  const isOpen = names.at(-1) === '*'
  if (isOpen) names.pop()
  // A server that ignores a slash in a path ignores it in its own table as well.
  if (names.at(-1) === '' && rule.read('/x/')[0]?.length === 1) names.pop()
  return rule.read(path).some(
    (segments) =>
      (isOpen ? segments.length >= names.length : segments.length === names.length) &&
      names.every((name, at) => {
        const segment = segments[at] ?? ''
        return name.startsWith(':') ? segment !== '' : rule.isSame(segment, name)
      }),
  )
}

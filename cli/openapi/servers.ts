/** The path of the server that operations are relative to. */
import { at, isObject, type Located } from './document.ts'

/** Scheme and authority, which may contain variables. */
const AUTHORITY = /^[a-z{][^/]*:\/\/[^/]*/i

/** Returns the path of the first server, without a slash at its end: `/v1`, or empty. */
export function basePathOf(...owners: readonly Located[]): string {
  for (const owner of owners) {
    const server = at(owner, 'servers', 0).value
    if (isObject(server) && typeof server.url === 'string')
      return pathOf(server.url, server.variables)
  }
  return ''
}

function pathOf(url: string, variables: unknown): string {
  const text = url.replace(AUTHORITY, '').replaceAll(/\{([^{}]+)\}/g, (_, name: string) => {
    const variable = isObject(variables) ? variables[name] : undefined
    return isObject(variable) ? String(variable.default ?? '') : ''
  })
  const base = 'https://server.invalid'
  const path = URL.canParse(text, base) ? new URL(text, base).pathname : ''
  return path.replace(/\/+$/, '')
}

/** The path of the server that operations are relative to. */
import type { Coverage } from './coverage.ts'
import type { Document } from './document.ts'
import { at, isObject, type JsonObject, type Located } from './located.ts'
import type { Notes } from './notes.ts'

/** Scheme and authority, which may contain variables. */
const AUTHORITY = /^[a-z{][^/]*:\/\/[^/]*/i
const VARIABLE = /\{([^{}]+)\}/g

/**
 * Returns the path of the first server, without a slash at its end: `/v1`, or empty. The first owner
 * with a list decides. Notes servers with another path.
 */
export function basePathOf(
  { coverage }: Document,
  notes: Notes,
  ...owners: readonly Located[]
): string {
  let base: string | undefined
  for (const owner of owners) {
    const servers = at(owner, 'servers')
    if (!Array.isArray(servers.value)) continue
    // Those of the document may apply to no operation.
    coverage.use(servers)
    if (base !== undefined || servers.value.length === 0) {
      coverage.useAll(servers)
      continue
    }
    for (const index of servers.value.keys()) {
      const server = at(servers, index)
      const path = serverPath(server)
      if (path === undefined) {
        coverage.useAll(server)
        notes.unmapped(`#${server.pointer}`, 'the server has no URL that can be read')
        continue
      }
      if (base !== undefined && path !== base) {
        coverage.useAll(server)
        notes.unmapped(
          `#${server.pointer}`,
          `only the path of the first server is used, ${base || '/'}; --prefix selects another one`,
        )
        continue
      }
      base ??= path
      useServer(coverage, notes, server)
    }
    base ??= ''
  }
  return base ?? ''
}

/**
 * Notes servers of an operation or its path whose host is none of the document's: routes do not name it. With
 * `isReplaced`, `--prefix` replaces the paths of the servers.
 */
export function noteHosts(
  { coverage, root }: Document,
  notes: Notes,
  owners: readonly Located[],
  isReplaced: boolean,
): void {
  const lists = owners.map((owner) => at(owner, 'servers'))
  if (isReplaced) for (const servers of lists) coverage.useAll(servers)
  const own = lists.find(({ value }) => Array.isArray(value))
  if (own === undefined) return
  const known = hostsIn(at(root, 'servers'))
  const hosts = hostsIn(own)
  const [host] = hosts
  if (host === undefined || hosts.some((name) => known.includes(name))) return
  notes.unmapped(
    `#${own.pointer}`,
    `the host ${host} is not imported: requests go to the origin of the gateway; set \`origin\` of the route, or remove the route`,
  )
}

/** Returns the hosts and ports of the servers with absolute URLs. */
const hostsIn = ({ value }: Located): readonly string[] =>
  (Array.isArray(value) ? value : []).flatMap((server: unknown) => {
    const url = isObject(server) && typeof server.url === 'string' ? server.url : ''
    const [authority] = AUTHORITY.exec(url) ?? []
    return authority === undefined ? [] : [authority.replace(/^.*?:\/\//, '').toLowerCase()]
  })

function serverPath({ value }: Located): string | undefined {
  if (!isObject(value) || typeof value.url !== 'string') return undefined
  return pathOf(value.url, value.variables)
}

/** Records a server. A variable of the path has only its default. */
function useServer({ use, useAll }: Coverage, notes: Notes, server: Located): void {
  const { url, variables } = server.value as JsonObject
  use(server)
  for (const name of ['url', 'name']) useAll(at(server, name))
  if (isObject(variables)) use(at(server, 'variables'))
  const ofPath = String(url).replace(AUTHORITY, '')
  for (const [, name = ''] of String(url).matchAll(VARIABLE)) {
    const variable = at(server, 'variables', name)
    if (!ofPath.includes(`{${name}}`)) {
      useAll(variable)
      notes.ignored('variables', 'variables of the host: the gateway has the URL of the origin')
      continue
    }
    use(variable)
    for (const member of ['default', 'enum']) useAll(at(variable, member))
  }
  for (const [, name = ''] of ofPath.matchAll(VARIABLE)) {
    const variable = isObject(variables) ? variables[name] : undefined
    const value = isObject(variable) ? variable.default : undefined
    const values = isObject(variable) && Array.isArray(variable.enum) ? variable.enum : []
    if (value === undefined)
      notes.unmapped(`#${server.pointer}`, `the variable {${name}} of the path has no default`)
    else if (values.some((other) => other !== value))
      notes.unmapped(
        `#${server.pointer}`,
        `only the default of the variable {${name}} is used; --prefix selects another value`,
      )
  }
}

function pathOf(url: string, variables: unknown): string | undefined {
  const text = url.replace(AUTHORITY, '').replaceAll(VARIABLE, (_, name: string) => {
    const variable = isObject(variables) ? variables[name] : undefined
    return isObject(variable) ? String(variable.default ?? '') : ''
  })
  const base = 'https://server.invalid'
  return URL.canParse(text, base) ? new URL(text, base).pathname.replace(/\/+$/, '') : undefined
}

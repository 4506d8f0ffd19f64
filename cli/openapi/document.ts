/** Loads an OpenAPI document with the files that it references, and resolves references. */
import { readFile } from 'node:fs/promises'
import { resolve as resolvePath } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { $RefParser } from '@apidevtools/json-schema-ref-parser'
import { Failure, undecided, usage } from '../failure.ts'
import { loadRunTimes, type RunTimes } from '../patterns/run-time.ts'
import { type Coverage, createCoverage } from './coverage.ts'
import { at, isObject, type JsonObject, type Located } from './located.ts'
import { parseText } from './parse.ts'

export interface Document {
  readonly root: Located<JsonObject>
  /** Whether it is OpenAPI 3.0, whose schemas are not those of JSON Schema 2020-12. */
  readonly is30: boolean
  /** Run times of the document's patterns. */
  readonly runTimes: RunTimes
  /** Which nodes the import used. */
  readonly coverage: Coverage
  /** The root, and the other files that references name. */
  readonly files: readonly Located[]
  /** Why files that references name cannot be read, by URL. */
  readonly unreadable: ReadonlyMap<string, string>
  /** Returns the target of references, or the value itself. Undefined if there is no target. */
  resolve(located: Located): Located | undefined
  /** Does the same, and records the references and the target as used. */
  follow(located: Located): Located | undefined
}

export interface LoadOptions {
  /** Whether references to URLs are followed. */
  readonly remoteRefs: boolean
}

const MAX_BYTES = 104_857_600
const TIMEOUT_MS = 30_000
const MAX_REFERENCES = 50

const isUrl = (source: string): boolean => /^https?:\/\//i.test(source)

/**
 * Loads a document from a file or URL. Throws a usage failure if it is not OpenAPI 3.0 to 3.2. A
 * reference that cannot be read is no failure: {@link Document.resolve} does not find its target.
 */
export async function loadDocument(source: string, options: LoadOptions): Promise<Document> {
  const rootUrl = isUrl(source) ? new URL(source).href : pathToFileURL(resolvePath(source)).href
  // The library compares names of files as paths, not as URLs.
  const start = isUrl(rootUrl) ? rootUrl : fileURLToPath(rootUrl)
  const parser = new $RefParser()
  let rootFailure: Failure | undefined
  const unreadable = new Map<string, string>()
  try {
    await parser.resolve(start, {
      continueOnError: true,
      parse: {
        json: false,
        yaml: false,
        text: false,
        binary: false,
        document: {
          order: 1,
          canParse: true,
          parse: ({ url, data }: { readonly url: string; readonly data: unknown }) => {
            try {
              return parseText(String(data)) as object
            } catch (error) {
              unreadable.set(urlOf(url), oneLine(error as Error))
              throw error
            }
          },
        },
      },
      resolve: {
        file: false,
        http: false,
        text: {
          order: 1,
          canRead: true,
          async read({ url }: { readonly url: string }) {
            const isRoot = url === start || url === rootUrl
            try {
              return await readText(url, isRoot || options.remoteRefs)
            } catch (error) {
              if (isRoot && error instanceof Failure) rootFailure = error
              throw error
            }
          },
        },
      },
    })
  } catch (error) {
    if (rootFailure !== undefined) throw rootFailure
    const wrong = unreadable.get(rootUrl)
    if (wrong !== undefined) throw usage(`${source}: ${wrong}; ${EXPECTED}`)
    const [first] = (error as { readonly errors?: readonly Error[] }).errors ?? [error as Error]
    if (!isObject(parser.schema)) throw usage(`${source}: ${oneLine(first)}`)
  }
  const root = parser.schema as unknown
  const version = isObject(root) ? root.openapi : undefined
  if (!isObject(root) || typeof version !== 'string' || !/^3\.[012](?:\.|$)/.test(version))
    throw usage(`${source}: ${notOpenApi(root)}`)
  const files = new Map<string, unknown>(
    Object.entries(parser.$refs.values()).map(([path, value]) => [urlOf(path), value]),
  )
  const coverage = createCoverage()
  const rootNode = { value: root, file: rootUrl, pointer: '' }
  return {
    root: rootNode,
    is30: /^3\.0(?:\.|$)/.test(version),
    runTimes: [...files.values()].some(hasPattern) ? await loadRunTimes() : NO_PATTERNS,
    coverage,
    unreadable,
    files: [
      rootNode,
      ...[...files]
        .filter(([file, value]) => file !== rootUrl && value !== undefined)
        .map(([file, value]) => ({ value, file, pointer: '' })),
    ],
    resolve: (located) => resolved(files, located, MAX_REFERENCES, () => {}),
    follow: (located) => resolved(files, located, MAX_REFERENCES, coverage.use),
  }
}

const NO_PATTERNS: RunTimes = { mistakeIn: () => undefined }

function hasPattern(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  return Object.entries(value).some(
    ([name, member]) => name === 'pattern' || name === 'patternProperties' || hasPattern(member),
  )
}

function notOpenApi(root: unknown): string {
  if (!isObject(root)) return `is not an OpenAPI document: it is not an object; ${EXPECTED}`
  if (root.swagger !== undefined)
    return `is Swagger ${String(root.swagger)}; convert it to OpenAPI 3 first, for example with \`npx swagger2openapi\``
  if (root.openapi === undefined)
    return `is not an OpenAPI document: it has no field openapi; ${EXPECTED}`
  return `is OpenAPI ${String(root.openapi)}; only 3.0, 3.1 and 3.2 are supported`
}

/** Ends each message about a document that cannot be read. */
const EXPECTED = 'name a file or a URL of an OpenAPI document in JSON or YAML'

const urlOf = (path: string): string => (isUrl(path) ? path : pathToFileURL(decoded(path)).href)

const oneLine = (error: Error | undefined): string =>
  (error?.message ?? 'cannot be read').replaceAll(/\s+/g, ' ')

async function readText(url: string, allowsRemote: boolean): Promise<string> {
  if (!isUrl(url)) return readLocal(url)
  if (!allowsRemote) throw usage(`${url} is not read; --remote-refs allows references to URLs`)
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) })
    if (!response.ok) throw new Error(`status ${response.status}`)
    const text = await response.text()
    if (text.length > MAX_BYTES) throw new Error('too large')
    return text
  } catch (error) {
    const detail = `${url} cannot be read: ${oneLine(error as Error)}`
    throw undecided('document_unavailable', detail)
  }
}

async function readLocal(url: string): Promise<string> {
  // The library percent-encodes paths.
  const path = url.startsWith('file:') ? fileURLToPath(url) : decoded(url)
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    throw usage(`${path} cannot be read (${(error as NodeJS.ErrnoException).code})`)
  }
}

/**
 * Follows references, also those on the way of a pointer. Does NOT know anchors: a fragment that is neither
 * empty nor a JSON Pointer (RFC 6901) refers to nothing, and so does a reference to a whole OpenAPI document.
 */
function resolved(
  files: ReadonlyMap<string, unknown>,
  located: Located,
  left: number,
  visit: (node: Located) => void,
): Located | undefined {
  visit(located)
  const reference = isObject(located.value) ? located.value.$ref : undefined
  if (typeof reference !== 'string') return located
  visit(at(located, '$ref'))
  if (left === 0) return undefined
  const [file, fragment] = targetOf(reference, located.file)
  if (file === undefined || !files.has(file)) return undefined
  let target: Located = { value: files.get(file), file, pointer: '' }
  if (fragment === '' ? isOpenApi(target.value) : !fragment.startsWith('/')) return undefined
  for (const token of fragment.split('/').slice(1)) {
    const isReference = isObject(target.value) && typeof target.value.$ref === 'string'
    const parent = isReference ? resolved(files, target, left - 1, visit) : target
    if (parent === undefined) return undefined
    target = at(parent, decoded(token).replaceAll('~1', '/').replaceAll('~0', '~'))
  }
  return target.value === undefined ? undefined : resolved(files, target, left - 1, visit)
}

const isOpenApi = (value: unknown): boolean => isObject(value) && typeof value.openapi === 'string'

function targetOf(reference: string, base: string): [file: string | undefined, fragment: string] {
  const hash = reference.indexOf('#')
  const path = hash === -1 ? reference : reference.slice(0, hash)
  const fragment = hash === -1 ? '' : reference.slice(hash + 1)
  if (path === '') return [base, fragment]
  return [URL.canParse(path, base) ? new URL(path, base).href : undefined, fragment]
}

function decoded(token: string): string {
  try {
    return decodeURIComponent(token)
  } catch {
    return token
  }
}

/** Loads one version of a policy after the other in one process. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import nodeModule, { createRequire } from 'node:module'
import { dirname, relative, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { Policy } from '../../src/policy/policy.ts'
import { usage } from '../failure.ts'
import { defaultExport, isPackageSource } from './load.ts'

/** The parameter in the URL of a module. Node loads a module once for each URL. */
const PARAMETER = 'policy-version'
const IN_PACKAGE = /[\\/]node_modules[\\/]/
/** Its classes are compared with those of the running server, so it is loaded once, also if it is linked. */
const THIS_PACKAGE = /^portcullis(\/|$)/

export interface PolicyVersion {
  readonly policy: Policy
  /**
   * The SHA-256 of the file, as `sha256sum` prints it; of several files, the SHA-256 of their lines in the
   * output of `sha256sum`, sorted, with paths from the folder of the project.
   */
  readonly digest: string
}

export interface PolicyVersions {
  /**
   * Loads what the files contain now. Each version stays in memory, because Node never forgets a module:
   * 10 to 100 KB. Throws as `loadPolicy` does.
   */
  load(): Promise<PolicyVersion>
  /** Returns the files of the last version, also of one that could not be loaded. Absolute paths. */
  files(): readonly string[]
}

/** By the version: the files that it loaded, or wanted to load, and the SHA-256 of each. */
const loaded = new Map<string, Map<string, string>>()
let isHooked = false
let count = 0

/** Creates the loader of the policy in `file`. `root` is the folder of the project. */
export function policyVersions(file: string, root: string): PolicyVersions {
  let files = new Map<string, string>()

  return {
    async load() {
      hook()
      forgetCommonJs(root)
      count += 1
      const version = String(count)
      files = new Map([[file, '']])
      loaded.set(version, files)
      const url = pathToFileURL(file)
      url.searchParams.set(PARAMETER, version)
      try {
        const policy = await defaultExport<Policy>(file, root, url.href)
        for (const path of commonJsOf(root)) files.set(path, sha256(readFileSync(path)))
        return { policy, digest: digestOf(files, root) }
      } finally {
        loaded.delete(version)
      }
    },
    files: () => [...files.keys()],
  }
}

/** Throws a usage failure if this Node cannot load a second version. */
export function requireVersions(): void {
  if (nodeModule.registerHooks === undefined)
    throw usage(`Node ${process.versions.node} cannot reload a policy: install Node 22.18 or later`)
}

function hook(): void {
  const { registerHooks } = nodeModule
  if (isHooked || registerHooks === undefined) return
  isHooked = true
  registerHooks({
    resolve(specifier, context, next) {
      const version = versionOf(context.parentURL)
      if (version === undefined || THIS_PACKAGE.test(specifier)) return next(specifier, context)
      const files = loaded.get(version)
      // A file that does not exist yet belongs to the policy.
      if (specifier.startsWith('.') && context.parentURL !== undefined)
        files?.set(resolve(dirname(fileURLToPath(context.parentURL)), specifier), '')
      const found = next(specifier, context)
      // A package of the workspace is linked from node_modules, and its files are elsewhere.
      if (!found.url.startsWith('file:') || IN_PACKAGE.test(found.url)) return found
      // In a checkout of this package, another hook has already replaced the name by a source.
      if (isPackageSource(found.url)) return found
      const url = new URL(found.url)
      url.searchParams.set(PARAMETER, version)
      return { ...found, url: url.href }
    },
    load(url, context, next) {
      const version = versionOf(url)
      const files = version === undefined ? undefined : loaded.get(version)
      if (files !== undefined) {
        const path = fileURLToPath(url)
        files.set(path, sha256(readFileSync(path)))
      }
      return next(url, context)
    },
  })
}

function versionOf(url: string | undefined): string | undefined {
  if (url?.startsWith('file:') !== true || !url.includes(PARAMETER)) return undefined
  return new URL(url).searchParams.get(PARAMETER) ?? undefined
}

/** CommonJS modules have a cache of their own, by path. */
const commonJsOf = (root: string): readonly string[] =>
  Object.keys(createRequire(import.meta.url).cache).filter(
    (path) => path.startsWith(root) && !IN_PACKAGE.test(path) && path !== fileOfThisProgram,
  )

const fileOfThisProgram = fileURLToPath(import.meta.url)

function forgetCommonJs(root: string): void {
  const { cache } = createRequire(import.meta.url)
  for (const path of commonJsOf(root)) delete cache[path]
}

const sha256 = (content: string | Buffer) => createHash('sha256').update(content).digest('hex')

function digestOf(files: ReadonlyMap<string, string>, root: string): string {
  const known = [...files].filter(([, digest]) => digest !== '')
  const [first] = known
  if (known.length === 1 && first !== undefined) return first[1]
  const lines = known.map(([path, digest]) => `${digest}  ${relative(root, path)}\n`)
  return sha256(lines.sort().join(''))
}

/** Finds and loads the policy of a project. Its packages are those of the project. */
import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs'
import nodeModule, { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Policy } from '../../src/policy/policy.ts'
import { usage } from '../failure.ts'

const CONFIGS = ['portcullis.config.ts', 'portcullis.config.js', 'portcullis.config.mjs']
const PACKAGE = 'portcullis'
/** The query of a module in a message of Node. */
const QUERY = /(?<=\.[cm]?(?:[jt]s|json))\?[\w=&-]+/g

/** Checkouts whose package is already resolved to its sources, with the URL of their sources. */
const mapped = new Map<string, string>()

/**
 * Returns the absolute path of the policy that is named relative to `folder`, or of the policy of
 * the project in `root`. `option` is the argument that names it, for the message. Throws a usage
 * failure if there is no such file.
 */
export function policyFile(
  named: string | undefined,
  option: string,
  folder: string,
  root: string,
): string {
  if (named !== undefined) {
    const file = resolve(folder, named)
    if (statSync(file, { throwIfNoEntry: false })?.isFile()) return file
    throw usage(`${option}: there is no file ${file}`)
  }
  const file = CONFIGS.map((name) => join(root, name)).find(existsSync)
  if (file === undefined)
    throw usage(`${root} has no portcullis.config.ts; name the policy with ${option}`)
  return file
}

/** Loads a policy, see {@link defaultExport}. Does NOT check that the export is a policy. */
export const loadPolicy = (file: string, root: string): Promise<Policy> =>
  defaultExport<Policy>(file, root)

/**
 * Runs the file, and returns its default export. `root` is the folder of the project. Throws the
 * `Misconfigured` of the project's own `portcullis` if the policy has mistakes, and a usage failure
 * if the file cannot be loaded. `url` is that of the file; another query is another module.
 */
export async function defaultExport<Value>(
  file: string,
  root: string,
  url = pathToFileURL(file).href,
): Promise<Value> {
  useSources(root)
  try {
    const { default: value } = await import(url)
    return value
  } catch (error) {
    const { code, name, message } = error as NodeJS.ErrnoException
    if (name === 'Misconfigured') throw error
    if (code === 'ERR_UNKNOWN_FILE_EXTENSION')
      throw usage(
        `Node ${process.versions.node} cannot read ${file}: install Node 22.18 or later, ` +
          'or compile it to JavaScript and name that file',
      )
    // Node's messages have a line for each module on the way.
    const text = message.replaceAll(QUERY, '').replaceAll(/\s*\n\s*/g, ' ')
    throw usage(`${file}: ${text}`)
  }
}

/**
 * Imports a subpath of the project's own copy of this package, such as `testing`. Only that copy can
 * use the policy of the project.
 */
export async function projectModule<Module>(subpath: string, root: string): Promise<Module> {
  useSources(root)
  const file = sourceOf(subpath, root) ?? installed(subpath, root)
  return import(pathToFileURL(file).href)
}

function installed(subpath: string, root: string): string {
  try {
    return createRequire(join(root, 'package.json')).resolve(`${PACKAGE}/${subpath}`)
  } catch {
    throw usage(`${root} has no usable copy of ${PACKAGE}; run \`npm install\` in it`)
  }
}

/** Returns the source of a subpath in a checkout of this package. */
function sourceOf(subpath: string, root: string): string | undefined {
  return [
    `${subpath}.ts`,
    `features/${subpath}/index.ts`,
    `runtimes/${subpath}/index.ts`,
    `${subpath}/index.ts`,
  ]
    .map((path) => join(root, 'src', path))
    .find((path) => mapped.has(root) && existsSync(path))
}

/** Reports whether a module is a source of this package, which this process loads once. */
export const isPackageSource = (url: string): boolean =>
  [...mapped.values()].some((sources) => url.startsWith(sources))

/**
 * In a checkout of this package, policies import its sources, not its last build. Node reads the
 * sources itself, since 22.18.
 */
function useSources(root: string): void {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const { registerHooks } = nodeModule
  if (manifest.name !== PACKAGE || registerHooks === undefined || mapped.has(root)) return
  // Node resolves links.
  const sources = join(root, 'src')
  if (!existsSync(sources)) return
  mapped.set(root, `${pathToFileURL(realpathSync(sources)).href}/`)
  registerHooks({
    resolve(specifier, context, next) {
      const [name, subpath = 'index'] = specifier.split(/\/(.*)/)
      const source = name === PACKAGE ? sourceOf(subpath, root) : undefined
      return next(source === undefined ? specifier : pathToFileURL(source).href, context)
    },
  })
}

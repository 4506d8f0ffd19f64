/** Model files: `NAME.fga`, and the `NAME.model.json` that is generated from it. */
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { ROOT } from '../root.ts'
import { ModelTextInvalid } from './mistake.ts'

export const MODEL_FILE = 'portcullis.fga'

const EXTENSION = '.fga'
const JSON_EXTENSION = '.model.json'

/**
 * Reports whether a path has the name of a model file. `fga.mod` and its modules do not: they are
 * schema 1.2.
 */
export const isModelFile = (path: string): boolean =>
  path.endsWith(EXTENSION) && !/(^|[\\/])\.fga$/.test(path)

/** Returns the path of the JSON file for a model file. */
export const jsonFileOf = (path: string): string =>
  path.slice(0, -EXTENSION.length) + JSON_EXTENSION

/**
 * Returns the expected text of the JSON file. Throws an `Error` with one line for each mistake, in
 * the form `path:line:column: why`.
 */
export async function jsonTextOf(path: string): Promise<string> {
  // Loaded only if there is a model, because the parser is slow to load.
  const { modelOf } = await import('./language.ts')
  try {
    return `${JSON.stringify(modelOf(textOf(path)), undefined, 2)}\n`
  } catch (error) {
    if (!(error instanceof ModelTextInvalid)) throw error
    throw new Error(
      error.mistakes.map(({ line, column, why }) => `${path}:${line}:${column}: ${why}`).join('\n'),
    )
  }
}

/** Writes the JSON file atomically. Returns false if it was already up to date. */
export async function writeModel(path: string): Promise<boolean> {
  const text = await jsonTextOf(path)
  const file = jsonFileOf(path)
  if (existsSync(file) && readFileSync(file, 'utf8') === text) return false
  const draft = `${file}.${randomBytes(6).toString('hex')}`
  try {
    writeFileSync(draft, text, { flag: 'wx' })
    renameSync(draft, file)
  } catch (error) {
    rmSync(draft, { force: true })
    throw new Error(`${file} cannot be written (${(error as NodeJS.ErrnoException).code})`)
  }
  return true
}

/** Throws an `Error` if the model is invalid, or its JSON file is missing or out of date. */
export async function checkModel(path: string): Promise<void> {
  const text = await jsonTextOf(path)
  const file = jsonFileOf(path)
  if (!existsSync(file)) throw new Error(`${file} is missing; run: ${commandFor(path)}`)
  if (readFileSync(file, 'utf8').replaceAll('\r\n', '\n') !== text)
    throw new Error(`${file} does not match ${path}; run: ${commandFor(path)}`)
}

/** Returns the command that generates the JSON of a model file, for use in the same folder. */
function commandFor(path: string): string {
  if (resolve(path) === join(ROOT, MODEL_FILE)) return 'npm run -s model'
  const word = /^[\w./][\w./-]*$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`
  return `npm run -s model -- ${word}`
}

/** Runs {@link checkModel} for the model of a checkout, if it has one. */
export async function checkModelIn(root: string): Promise<void> {
  const path = relative('', join(root, MODEL_FILE))
  if (existsSync(path)) await checkModel(path)
}

/** Reads a file, without the byte order mark that some editors write. */
function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8').replace(/^\uFEFF/, '')
  } catch (error) {
    throw new Error(`${path} cannot be read (${(error as NodeJS.ErrnoException).code})`)
  }
}

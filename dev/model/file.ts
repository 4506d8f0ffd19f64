/** Models in files: `NAME.fga`, and `NAME.model.json` beside it, which is made of it. */
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { ROOT } from '../start/settings.ts'
import { ModelTextInvalid } from './mistake.ts'

export const MODEL_FILE = 'portcullis.fga'

const EXTENSION = '.fga'
const JSON_EXTENSION = '.model.json'

/** Whether a file is named as one. `fga.mod` and its modules are not: they are schema 1.2. */
export const isModelFile = (path: string): boolean =>
  path.endsWith(EXTENSION) && !/(^|[\\/])\.fga$/.test(path)

/** Where the JSON of a model file is. */
export const jsonFileOf = (path: string): string =>
  path.slice(0, -EXTENSION.length) + JSON_EXTENSION

/**
 * The text that the JSON file should have. Throws an `Error` with a line for each mistake, as
 * `path:line:column: why`.
 */
export async function jsonTextOf(path: string): Promise<string> {
  // Only who has a model pays for the parser.
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

/** Makes the JSON file, whole or not at all. False where it was as it should be. */
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

/** Throws an `Error` where the model is wrong, or its JSON file is not what it says. */
export async function checkModel(path: string): Promise<void> {
  const text = await jsonTextOf(path)
  const file = jsonFileOf(path)
  if (!existsSync(file)) throw new Error(`${file} is missing; run: ${commandFor(path)}`)
  if (readFileSync(file, 'utf8').replaceAll('\r\n', '\n') !== text)
    throw new Error(`${file} is not what ${path} says; run: ${commandFor(path)}`)
}

/** What makes the JSON of a model file: a command to paste, from the same folder. */
function commandFor(path: string): string {
  if (resolve(path) === join(ROOT, MODEL_FILE)) return 'npm run -s model'
  const word = /^[\w./][\w./-]*$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`
  return `npm run -s model -- ${word}`
}

/** {@link checkModel} for the model of a checkout, if it has one. */
export async function checkModelIn(root: string): Promise<void> {
  const path = relative('', join(root, MODEL_FILE))
  if (existsSync(path)) await checkModel(path)
}

/** Some editors write a byte order mark. */
function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8').replace(/^\uFEFF/, '')
  } catch (error) {
    throw new Error(`${path} cannot be read (${(error as NodeJS.ErrnoException).code})`)
  }
}

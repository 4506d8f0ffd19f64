/**
 * `npm run -s model`: converts models in OpenFGA's language to the JSON that the policy imports.
 */
import { join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { checkModel, isModelFile, jsonFileOf, MODEL_FILE, writeModel } from './model/file.ts'
import { ROOT } from './start/settings.ts'

const USAGE = `npm run -s model [-- --check] [FILE.fga ...]

Reads authorization models in OpenFGA's language, schema 1.1, and writes each one's JSON beside it:
${MODEL_FILE} becomes ${jsonFileOf(MODEL_FILE)}. A mistake is reported as
FILE:LINE:COLUMN: REASON, and no JSON is written for that file.

  --check   writes nothing, and fails if the JSON does not match the model
  --help

Without a FILE: ${MODEL_FILE}. Status 1: the command failed; 2: usage error.`

interface ModelRequest {
  readonly check: boolean
  readonly files: readonly string[]
}

/** Parses the arguments. Throws an `Error` of one line if they are invalid. */
function readRequest(argv: readonly string[]): ModelRequest | 'help' {
  const { values, positionals } = parseArgs({
    args: [...argv],
    options: { check: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } },
    allowPositionals: true,
  })
  if (values.help) return 'help'
  for (const file of positionals) {
    if (file.endsWith('fga.mod'))
      throw new Error(`${file}: modules are not supported; write one model of schema 1.1`)
    if (!isModelFile(file)) throw new Error(`${file} must be named NAME.fga`)
  }
  const files = positionals.length > 0 ? positionals : [relative('', join(ROOT, MODEL_FILE))]
  return { check: values.check ?? false, files }
}

/** Processes each file separately, so that a mistake in one does not hide those of another. */
async function run({ check, files }: ModelRequest): Promise<void> {
  for (const file of files) {
    try {
      if (check) await checkModel(file)
      else {
        const isNew = await writeModel(file)
        console.log(`${jsonFileOf(file)} is ${isNew ? 'written' : 'up to date'}`)
      }
    } catch (error) {
      console.error((error as Error).message)
      process.exitCode = 1
    }
  }
}

// npm runs scripts in the package's folder, but paths are relative to the user's folder.
if (process.env.INIT_CWD !== undefined) process.chdir(process.env.INIT_CWD)
try {
  const request = readRequest(process.argv.slice(2))
  if (request === 'help') console.log(USAGE)
  else await run(request)
} catch (error) {
  console.error(`model: ${(error as Error).message}\nSee: npm run -s model -- --help`)
  process.exitCode = 2
}

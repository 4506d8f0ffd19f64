/** `npm run -s keys`: generates, rotates and lists the gateway's signing keys. */
import { join } from 'node:path'
import type { SigningAlgorithm, SigningJwk } from '../src/tokens/signing-keys.ts'
import { devVarsFile, jwksFile, type KeyFile } from './keys/key-file.ts'
import {
  algorithmOfNext,
  DEFAULT_SIGNING_ALGORITHM,
  factsOf,
  generateSigningKey,
  rotated,
} from './keys/key-set.ts'
import { type KeysRequest, readRequest, USAGE } from './keys/request.ts'
import { defaultPublicUrl, ROOT } from './start/settings.ts'

function requestOrExit(): KeysRequest | 'help' {
  try {
    return readRequest(process.argv.slice(2))
  } catch (error) {
    const [problem] = (error as Error).message.split('\n')
    console.error(`keys: ${problem}\nSee: npm run -s keys -- --help`)
    process.exit(2)
  }
}

/** Runs a command. Throws an `Error` with a message of one line if it fails. */
async function run({ command, algorithms, force, json, ...request }: KeysRequest): Promise<void> {
  const nowMs = Date.now()
  if (command === 'generate' && request.file === '-') {
    return console.log(JSON.stringify({ keys: await generated(algorithms) }))
  }
  const file =
    request.file === undefined
      ? devVarsFile(join(ROOT, '.dev.vars'), defaultPublicUrl())
      : jwksFile(request.file)
  if (command === 'generate') {
    // With `--force`, the file is not read, so that an invalid key set can be replaced too.
    if (!force && holdsSomething(file)) {
      throw new Error(`${file.path} already has keys; rotate them, or replace them with --force`)
    }
    return save(file, await generated(algorithms), nowMs)
  }
  const keys = file.read()
  if (keys === undefined) throw new Error(`${file.path} has no keys; run generate first`)
  if (command === 'rotate') {
    const fresh = await generateSigningKey(algorithms[0] ?? algorithmOfNext(keys, nowMs))
    return save(file, rotated(keys, fresh, nowMs), nowMs)
  }
  if (json) console.log(JSON.stringify({ keys: factsOf(keys, nowMs) }))
  else console.log(table(keys, nowMs))
}

function generated(algorithms: readonly SigningAlgorithm[]): Promise<SigningJwk[]> {
  const wanted = algorithms.length === 0 ? [DEFAULT_SIGNING_ALGORITHM] : algorithms
  return Promise.all(wanted.map(generateSigningKey))
}

function holdsSomething(file: KeyFile): boolean {
  try {
    return file.read() !== undefined
  } catch {
    return true
  }
}

async function save(file: KeyFile, keys: readonly SigningJwk[], nowMs: number): Promise<void> {
  await file.write(keys)
  console.log(`${table(keys, nowMs)}\n\nNext: ${file.nextStep}`)
}

function table(keys: readonly SigningJwk[], nowMs: number): string {
  return factsOf(keys, nowMs)
    .map(({ kid, alg, state, notBefore, expiresAt }) =>
      [
        ...[kid, alg.padEnd(5), state.padEnd(8)],
        ...(notBefore === undefined ? [] : [`signs from ${notBefore}`]),
        ...(expiresAt === undefined ? [] : [`verifies until ${expiresAt}`]),
      ]
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

const request = requestOrExit()
if (request === 'help') {
  console.log(USAGE)
} else {
  try {
    await run(request)
  } catch (error) {
    console.error(`keys: ${(error as Error).message.split('\n')[0]}`)
    process.exit(1)
  }
}

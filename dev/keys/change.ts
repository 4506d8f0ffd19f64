/** Creates and rotates the keys of a file, and describes them. */
import type { SigningAlgorithm, SigningJwk } from '../../src/access/tokens/signing-keys.ts'
import { jwksFile, type KeyFile } from './key-file.ts'
import {
  algorithmOfNext,
  DEFAULT_SIGNING_ALGORITHM,
  factsOf,
  generateSigningKey,
  rotated,
} from './key-set.ts'

export { factsOf, jwksFile, type SigningAlgorithm, type SigningJwk }

/** Returns a new key for each algorithm; without one, a key for the default algorithm. */
export function generatedKeys(algorithms: readonly SigningAlgorithm[]): Promise<SigningJwk[]> {
  const wanted = algorithms.length === 0 ? [DEFAULT_SIGNING_ALGORITHM] : algorithms
  return Promise.all(wanted.map(generateSigningKey))
}

/**
 * Writes new keys to a file. Without `force`, throws an `Error` of one line if the file already has
 * content. With it, the file is not read, so that an invalid key set can be replaced too.
 */
export async function generateInto(
  file: KeyFile,
  algorithms: readonly SigningAlgorithm[],
  force: boolean,
): Promise<readonly SigningJwk[]> {
  if (!force && holdsSomething(file)) {
    throw new Error(`${file.path} already has keys; rotate them, or replace them with --force`)
  }
  const keys = await generatedKeys(algorithms)
  await file.write(keys)
  return keys
}

/** Returns the keys of a file. Throws an `Error` of one line if it has none. */
export function keysOf(file: KeyFile): readonly SigningJwk[] {
  const keys = file.read()
  if (keys === undefined) throw new Error(`${file.path} has no keys; run generate first`)
  return keys
}

/** Adds a new key to the front of a file. Throws an `Error` of one line if the file has no keys. */
export async function rotateIn(
  file: KeyFile,
  algorithm: SigningAlgorithm | undefined,
  nowMs: number,
): Promise<readonly SigningJwk[]> {
  const keys = keysOf(file)
  const fresh = await generateSigningKey(algorithm ?? algorithmOfNext(keys, nowMs))
  const set = rotated(keys, fresh, nowMs)
  await file.write(set)
  return set
}

function holdsSomething(file: KeyFile): boolean {
  try {
    return file.read() !== undefined
  } catch {
    return true
  }
}

/** Describes each key in a line, without private members. */
export function tableOf(keys: readonly SigningJwk[], nowMs: number): string {
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

/** The policy of a checkout, for a gateway in this process. */
import { pathToFileURL } from 'node:url'
import type { Policy } from '../../src/runtimes/node/index.ts'
import { mapImports } from './map-imports.ts'

/** Loads a policy. Its packages are the copies of this checkout, of which `portcullis` is the source. */
export async function policyIn(file: string): Promise<Policy> {
  mapImports()
  const { default: policy } = await import(pathToFileURL(file).href)
  return policy
}

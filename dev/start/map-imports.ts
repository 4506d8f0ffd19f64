/** Makes policies in any folder import the copies of this checkout, of which `portcullis` is the source. */
import { registerHooks } from 'node:module'
import { pathToFileURL } from 'node:url'
import { policyImports } from './policy-paths.ts'

let isMapped = false

/** Maps the imports of this process. Later calls do nothing. */
export function mapImports(): void {
  if (isMapped) return
  isMapped = true
  const imports = policyImports()
  registerHooks({
    resolve(specifier, context, next) {
      const found = Object.hasOwn(imports, specifier) ? imports[specifier] : undefined
      return next(found === undefined ? specifier : pathToFileURL(found).href, context)
    },
  })
}

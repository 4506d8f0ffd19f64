/** Plugin of the build of the command line: keeps a large module of a package compressed. */
import { readFileSync } from 'node:fs'
import { brotliCompressSync, constants } from 'node:zlib'
import type { Rolldown } from 'tsdown'

/** The last two qualities need seconds, and make the file a tenth smaller. */
const QUALITY = 9

/**
 * Replaces a CommonJS module without imports by one that reads `fileName`, which is the text of the module after
 * Brotli, and runs it.
 */
export function compressed(module: RegExp, fileName: string): Rolldown.Plugin {
  return {
    name: 'compressed',
    load: {
      filter: { id: module },
      handler(id) {
        const source = brotliCompressSync(readFileSync(id), {
          params: { [constants.BROTLI_PARAM_QUALITY]: QUALITY },
        })
        const referenceId = this.emitFile({ type: 'asset', fileName, source })
        return `
          import { readFileSync } from 'node:fs'
          import { compileFunction } from 'node:vm'
          import { brotliDecompressSync } from 'node:zlib'
          const file = new URL(import.meta.ROLLUP_FILE_URL_${referenceId})
          const text = brotliDecompressSync(readFileSync(file)).toString()
          const module = { exports: {} }
          compileFunction(text, ['module', 'exports'])(module, module.exports)
          export default module.exports
        `
      },
    },
  }
}

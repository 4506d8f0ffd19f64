/** Plugins of the build of the package. */
import { decode, encode, type SourceMapSegment } from '@jridgewell/sourcemap-codec'
import type { Rolldown } from 'tsdown'

const SOURCE = /\/src\/.*(?<!\.d)\.ts$/

interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
}

/**
 * Lets the bundler of a consumer leave out each constant that nothing uses. A chunk contains many
 * modules, and a bundler keeps a top-level call, because it may have effects. No module of `src` has
 * effects when it is loaded (`sideEffects` in package.json), so each constant whose value contains a
 * call becomes the result of a function that is marked as pure.
 */
export function markPure(): Rolldown.Plugin {
  return {
    name: 'mark-pure',
    transform: {
      filter: { id: SOURCE },
      handler(code) {
        const program = this.parse(code, { lang: 'ts' })
        let marked = ''
        let at = 0
        for (const { start, end } of program.body.flatMap(constantsOf)) {
          marked += `${code.slice(at, start)}/* @__PURE__ */ (() => (${code.slice(start, end)}))()`
          at = end
        }
        return at === 0 ? null : { code: marked + code.slice(at), map: null }
      },
    },
    // A chunk imports others, and packages, without names only for effects, and bundlers warn of such imports.
    generateBundle(_, bundle) {
      for (const file of Object.values(bundle))
        if (file.type === 'chunk') file.code = file.code.replaceAll(/^import "[^"]*";$/gm, '')
    },
  }
}

/** Returns the start of a segment: its column, and the file, line and column in the source. */
function withoutName(segment: SourceMapSegment): SourceMapSegment {
  return segment.length === 1 ? segment : [segment[0], segment[1], segment[2], segment[3]]
}

const MAP_COMMENT = /\n\/\/# sourceMappingURL=.*\s*$/

/**
 * Puts a short source map into each built file: a line maps to a line of the source, columns do not.
 * So a stack trace names the module and the line. The map does not contain the source, because the
 * built file is readable itself, and because the maps would be a third of the package.
 */
export function embedMaps(): Rolldown.Plugin {
  return {
    name: 'embed-maps',
    generateBundle(_, bundle) {
      for (const file of Object.values(bundle)) {
        if (file.type !== 'asset' || !file.fileName.endsWith('.js.map')) continue
        const chunk = bundle[file.fileName.slice(0, -'.map'.length)]
        if (chunk?.type !== 'chunk') throw new Error(`${file.fileName}: belongs to no file`)
        const { sources, mappings } = JSON.parse(String(file.source)) as SourceMap
        const lines = decode(mappings).map((segments) => segments.slice(0, 1).map(withoutName))
        const map = JSON.stringify({ version: 3, sources, names: [], mappings: encode(lines) })
        const url = `data:application/json;base64,${Buffer.from(map).toString('base64')}`
        chunk.code = `${chunk.code.replace(MAP_COMMENT, '')}\n//# sourceMappingURL=${url}\n`
        delete bundle[file.fileName]
      }
    },
  }
}

interface SourceMap {
  readonly sources: readonly string[]
  readonly mappings: string
}

/**
 * Lets older compilers read the declarations. The type parameter of `Uint8Array` exists since
 * TypeScript 5.7, and TypeScript 7 writes its default. Declarations have no source maps, so
 * references to these are removed as well.
 */
export function simplifyDeclarations(): Rolldown.Plugin {
  return {
    name: 'simplify-declarations',
    generateBundle(_, bundle) {
      for (const file of Object.values(bundle)) {
        if (file.type !== 'chunk' || !file.fileName.endsWith('.d.ts')) continue
        file.code = file.code
          .replaceAll('Uint8Array<ArrayBufferLike>', 'Uint8Array')
          .replace(MAP_COMMENT, '\n')
      }
    },
  }
}

/** Returns the values of the constants that a top-level statement declares, if they contain calls. */
function constantsOf(statement: unknown): readonly Node[] {
  const { type, declaration } = statement as { type: string; declaration?: unknown }
  if (type === 'ExportNamedDeclaration' && declaration) return constantsOf(declaration)
  if (type !== 'VariableDeclaration') return []
  const { kind, declarations } = statement as {
    kind: string
    declarations: { init: Node | null }[]
  }
  if (kind !== 'const') return []
  return declarations.flatMap(({ init }) => (init !== null && contains(init) ? [init] : []))
}

/** Reports whether evaluating the expression calls a function. */
function contains(node: unknown): boolean {
  if (typeof node !== 'object' || node === null) return false
  if (Array.isArray(node)) return node.some(contains)
  const { type } = node as Partial<Node>
  if (type === 'CallExpression' || type === 'NewExpression') return true
  if (type === 'ArrowFunctionExpression' || type === 'FunctionExpression') return false
  return Object.values(node).some(contains)
}

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
    // A chunk imports others without names only for effects, and bundlers warn of such imports.
    generateBundle(_, bundle) {
      for (const file of Object.values(bundle))
        if (file.type === 'chunk') file.code = file.code.replaceAll(/^import "\.[^"]*";$/gm, '')
    },
  }
}

interface SourceMap {
  readonly mappings: string
  readonly sourcesContent: readonly string[]
}

/** Returns the start of a segment: its column, and the file, line and column in the source. */
function withoutName(segment: SourceMapSegment): SourceMapSegment {
  return segment.length === 1 ? segment : [segment[0], segment[1], segment[2], segment[3]]
}

/** A comment on lines of its own. */
const COMMENT = /^[ \t]*(?:\/\*\*(?:[^*]|\*(?!\/))*\*\/[ \t]*|\/\/.*)$/gm

/**
 * Shortens source maps, which would be half of the package: each line of the built file maps to a line
 * of the source, columns do not. The sources lose their comments, but not the lines of these.
 */
export function shortenMaps(): Rolldown.Plugin {
  const blank = (comment: string) => comment.replaceAll(/[^\n]/g, '')
  return {
    name: 'shorten-maps',
    generateBundle(_, bundle) {
      for (const file of Object.values(bundle)) {
        if (file.type !== 'asset' || !file.fileName.endsWith('.js.map')) continue
        const map = JSON.parse(String(file.source)) as SourceMap
        const lines = decode(map.mappings).map((segments) => segments.slice(0, 1).map(withoutName))
        file.source = JSON.stringify({
          ...map,
          names: [],
          mappings: encode(lines),
          sourcesContent: map.sourcesContent.map((text) => text.replace(COMMENT, blank)),
        })
      }
    },
  }
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
          .replace(/\n\/\/# sourceMappingURL=.*\s*$/, '\n')
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

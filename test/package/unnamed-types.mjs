/**
 * Runs in a consumer's project. Prints the types that functions of `portcullis/parts` return, or that
 * methods of its interfaces use, but that it does not export: a consumer cannot name them.
 * Argument: the folder of a TypeScript with the API of version 6.
 */
import { createRequire } from 'node:module'
import { resolve } from 'node:path'

const require = createRequire(import.meta.url)
const ts = require(resolve(process.argv[2], 'lib/typescript.js'))
const dist = resolve('node_modules/portcullis/dist')
const entry = resolve(dist, 'parts.d.ts')
const program = ts.createProgram([entry], {
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  types: [],
})
const checker = program.getTypeChecker()

/** Returns what a symbol of an import or export stands for. */
const targetOf = (symbol) =>
  symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol

const parts = checker.getSymbolAtLocation(program.getSourceFile(entry))
const exported = new Set(checker.getExportsOfModule(parts).map(targetOf))
const unnamed = new Set()

function visit(node) {
  const symbol = ts.isTypeReferenceNode(node) && checker.getSymbolAtLocation(node.typeName)
  const type = symbol && targetOf(symbol)
  const isOurs = type?.declarations?.[0].getSourceFile().fileName.startsWith(dist)
  if (isOurs && !(type.flags & ts.SymbolFlags.TypeParameter) && !exported.has(type))
    unnamed.add(type.name)
  ts.forEachChild(node, visit)
}

const isMethod = (member) => ts.isMethodSignature(member) || ts.isCallSignatureDeclaration(member)
for (const { declarations = [] } of exported)
  for (const declaration of declarations) {
    if (ts.isFunctionDeclaration(declaration) && declaration.type) visit(declaration.type)
    if (ts.isInterfaceDeclaration(declaration)) declaration.members.filter(isMethod).forEach(visit)
  }
console.log(JSON.stringify({ exported: exported.size, unnamed: [...unnamed] }))

/** Every field of a policy and of an issuer has a comment, which editors show: in the declarations of the build. */
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { API, type Checker, type Type } from 'typescript/unstable/sync'
import { describe, expect, test } from 'vitest'
import { builtPackage } from '../dev/start/build.ts'
import { ROOT } from '../harness/process.ts'

/** The functions whose arguments are parts of a policy, by the subpath of the package. */
const FUNCTIONS: Readonly<Record<string, readonly string[]>> = {
  '.': ['definePolicy', 'group'],
  './authorization-code': ['authorizationCode'],
  './authorization-server': ['authorizationServer'],
  './authzen': ['authzen'],
  './console': ['console'],
  './cors': ['cors'],
  './credentials': ['secret', 'clientCredentials'],
  './forward-auth': ['forwardAuth'],
  './introspection': ['introspection'],
  './mcp': ['mcp'],
  './openapi': ['openapi'],
  './openfga': ['openfga'],
  './operators': ['operators'],
  './origins': ['origins'],
  './otlp': ['otlp'],
  './plans': ['plans', 'quotas'],
  './relations': ['relations'],
  './sign-in': ['signIn'],
  './signals': ['signals'],
  './signatures': ['signatures'],
  './upstash': ['upstash'],
}

/** Returns a module that exports the arguments of the functions, and the types of issuers. */
async function entryText(dist: string): Promise<string> {
  const { default: manifest } = await import('../../package.json', { with: { type: 'json' } })
  const exports: Readonly<Record<string, string | { readonly types: string }>> = manifest.exports
  const of = (subpath: string) => {
    const target = exports[subpath]
    return join(dist, '..', typeof target === 'object' ? target.types : '')
  }
  const functions = Object.entries(FUNCTIONS).flatMap(([subpath, names]) =>
    names.map(
      (name) => `export type Of_${name} = Parameters<typeof import('${of(subpath)}').${name}>`,
    ),
  )
  return [...functions, `export type Issuer = import('${of('./hono')}').IssuerOptions`].join('\n')
}

const TSCONFIG = {
  compilerOptions: {
    target: 'es2024',
    module: 'nodenext',
    lib: ['ES2024', 'DOM'],
    types: [],
    strict: true,
    skipLibCheck: true,
    noEmit: true,
  },
  files: ['entry.ts'],
}

/** Returns the fields without a comment, as `Type.field`. Fields of other packages are theirs. */
function uncommented(checker: Checker, types: readonly Type[], dist: string) {
  const seen = new Set<number>()
  const missing = new Set<string>()
  let fields = 0

  function walk(type: Type): void {
    if (type.isUnionType()) {
      for (const part of type.getTypes()) walk(part)
      return
    }
    if (seen.has(type.id)) return
    seen.add(type.id)
    if (type.isTypeReference() && checker.isArrayLikeType(type)) {
      for (const item of checker.getTypeArguments(type)) walk(item)
      return
    }
    for (const { valueType } of checker.getIndexInfosOfType(type)) walk(valueType)
    const properties = checker.getPropertiesOfType(type)
    // The result of a function of the package, which a user does not write.
    if (properties.some(({ name }) => name === 'feature' || name === 'by')) {
      if (!properties.some(({ name }) => name === 'windowSeconds')) return
    }
    for (const property of properties) {
      const [declaration] = property.declarations
      if (!declaration?.path.startsWith(dist)) continue
      fields += 1
      if (checker.getDocumentationCommentOfSymbol(property) === '')
        missing.add(`${type.getSymbol()?.name}.${property.name}`)
      // The names of the texts of a language are explained by the English texts.
      const value = property.name === 'texts' ? undefined : checker.getTypeOfSymbol(property)
      if (value !== undefined) walk(value)
    }
  }

  for (const type of types) walk(type)
  return { fields, missing: [...missing].sort() }
}

describe('the declarations of the package', () => {
  test('explain every field of a policy, of its features, and of an issuer', async () => {
    const dist = await builtPackage()
    const folder = await mkdtemp(join(tmpdir(), 'portcullis-hover-'))
    const api = new API({ cwd: folder })
    try {
      await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(TSCONFIG))
      await writeFile(join(folder, 'entry.ts'), await entryText(dist))
      await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
      const config = join(folder, 'tsconfig.json')
      const project = api.updateSnapshot({ openProject: config }).getProject(config)
      const file = project?.program.getSourceFile(join(folder, 'entry.ts'))
      const module = file && project?.checker.getSymbolAtLocation(file)
      if (project === undefined || module === undefined) throw new Error('the entry has no types')
      expect(project.program.getSemanticDiagnostics(join(folder, 'entry.ts'))).toEqual([])
      const { checker } = project
      const types = checker
        .getExportsOfModule(module)
        .map((symbol) => checker.getDeclaredTypeOfSymbol(symbol))
      const { fields, missing } = uncommented(checker, types, dist.toLowerCase())
      expect(missing).toEqual([])
      expect(fields).toBeGreaterThan(200)
    } finally {
      api.close()
      await rm(folder, { recursive: true, force: true })
    }
  })
})

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { published, requireFiles } from '../../dev/package/manifest.ts'
import { packedDocument } from '../../dev/package/pack.ts'
import { VERSION } from '../../src/features/openapi/version.ts'
import { ROOT } from '../harness/process.ts'

const manifest = readFileSync(join(ROOT, 'package.json'), 'utf8')

describe('the manifest of the packed package', () => {
  const packed = JSON.parse(published(manifest)) as Record<string, unknown>

  test('has nothing that only a checkout needs', () => {
    expect(Object.keys(packed)).not.toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^(?:scripts|devDependencies|workspaces|overrides|imports)$/),
      ]),
    )
    expect(JSON.stringify(packed)).not.toMatch(/prepare|vitest|portcullis\.config/)
  })

  test('has what a user needs', () => {
    const { name, version, bin, exports, dependencies, peerDependencies, engines } = packed
    for (const field of [name, version, bin, exports, dependencies, peerDependencies, engines])
      expect(field).toBeDefined()
  })

  test('does not install what the build contains', () => {
    expect(packed.dependencies).toHaveProperty('jose')
    expect(packed.dependencies).not.toHaveProperty('@upstash/redis')
  })

  test('has the version that the gateway reports', () => {
    expect(packed.version).toBe(VERSION)
  })
})

describe('the README of the packed package', () => {
  const paths = new Set(['README.md', 'LICENSE', 'docs/node.md', 'docs/errors.md'])
  const readme = packedDocument('README.md', paths)

  test('has no command that only a checkout has, and no address of a registry or repository', () => {
    expect(readme).toContain('npx portcullis explain')
    expect(readme).not.toMatch(/npm (?:ci|start|test|run)|https?:|git clone/)
  })

  test('links to what is packed, and names the rest', () => {
    expect(readme).toContain('[Node](docs/node.md#start), identity providers |')
    expect(readme).not.toContain('](../')
  })

  test('shows the policy that the example files have', () => {
    const [code = ''] = /(?<=```ts\n)[\s\S]*?(?=```)/.exec(readme) ?? []
    expect(readFileSync(join(ROOT, 'examples/testing/policy.ts'), 'utf8')).toContain(code)
  })
})

test('a picture that is not packed is its text', () => {
  const document = packedDocument('docs/concepts.md', new Set(['docs/concepts.md']))
  expect(document).toContain('\nA gateway is between the client and the API')
})

describe('a package without a build', () => {
  const paths = ['package.json', 'README.md', 'dist/index.js']

  test('is not packed, and the message says what to do', () => {
    expect(() => requireFiles(manifest, new Set(paths))).toThrow(
      /there is no dist\/.*npm run build/,
    )
  })
})

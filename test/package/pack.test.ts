import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { published, requireFiles } from '../../dev/package/manifest.ts'
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

  test('has the version that the gateway reports', () => {
    expect(packed.version).toBe(VERSION)
  })
})

describe('a package without a build', () => {
  const paths = ['package.json', 'README.md', 'dist/index.js']

  test('is not packed, and the message says what to do', () => {
    expect(() => requireFiles(manifest, new Set(paths))).toThrow(
      /there is no dist\/.*npm run build/,
    )
  })
})

import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { ROOT } from '../harness/process.ts'

const directory = mkdtempSync(join(tmpdir(), 'consumer-'))
afterAll(() => rmSync(directory, { recursive: true }))

test('a Worker in another package compiles with the types as the README describes, without those of Node or a browser', () => {
  const config = join(directory, 'tsconfig.json')
  writeFileSync(
    config,
    JSON.stringify({
      compilerOptions: {
        target: 'ES2024',
        lib: ['ES2024'],
        module: 'ESNext',
        moduleResolution: 'bundler',
        strict: true,
        skipLibCheck: true,
        noEmit: true,
        allowImportingTsExtensions: true,
        types: [join(ROOT, 'node_modules/@cloudflare/workers-types')],
        paths: { 'portcullis/parts': [join(ROOT, 'src/parts.ts')] },
      },
      files: [join(ROOT, 'src/index.ts'), join(ROOT, 'examples/middleware/worker.ts')],
    }),
  )
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc')
  const { stdout, status } = spawnSync(process.execPath, [compiler, '-p', config], {
    encoding: 'utf8',
  })
  expect(stdout).toBe('')
  expect(status).toBe(0)
})

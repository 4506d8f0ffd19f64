import { cp, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { builtPackage } from '../dev/start/build.ts'
import { type Checkout, makeCheckout } from '../dev/start/checkout.ts'
import { blocksOf } from '../docs/blocks.ts'
import { readDocument } from '../docs/documents.ts'
import { ROOT } from '../harness/process.ts'

let checkout: Checkout

beforeAll(async () => {
  checkout = await makeCheckout()
  for (const name of ['packages', 'docs', 'ops', 'README.md', 'CHANGELOG.md', 'LICENSE'])
    await cp(join(ROOT, name), join(checkout.path, name), { recursive: true })
  await cp(await builtPackage(), join(checkout.path, 'dist'), { recursive: true })
}, 120_000)

afterAll(() => checkout?.close())

test.each(['docs/mcp.md', 'docs/your-api.md'])(
  'npm run create in %s writes a project',
  async (path) => {
    const block = blocksOf(readDocument(path)).find(({ text }) => text.includes('npm run create'))
    // The projects are in this checkout, so that they go with it.
    const lines = block?.text.replaceAll('../', '').split(/ && |\n/) ?? []
    const at = lines.findIndex((line) => line.startsWith('npm run create -- '))
    const args = lines[at]?.split(' ').slice(4) ?? []
    const create = ['node', 'dev/create.ts', ...args, '--json', '--no-git'] as const
    const { code, stdout, stderr } = await checkout.run(create).ended
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(['npm ci', JSON.parse(stdout).next].flat()).toEqual(lines.toSpliced(at, 1))
  },
)

test('npm run create in a checkout writes a project with the package of the checkout', async () => {
  const { create } = JSON.parse(await checkout.file('package.json')).scripts
  expect(create).toBe('npm run -s build && node dev/create.ts')
  const args = ['my-mcp-server', '--kind', 'mcp', '--json', '--no-git']
  // The build is there.
  const { code, stdout, stderr } = await checkout.run(['node', 'dev/create.ts', ...args]).ended
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(JSON.parse(stdout).next).toEqual(['cd my-mcp-server', 'npm install', 'npm start'])
  const project = join(checkout.path, 'my-mcp-server')
  const manifest = JSON.parse(await readFile(join(project, 'package.json'), 'utf8'))
  expect(manifest.dependencies.portcullis).toBe('file:./portcullis-0.1.0.tgz')
  expect((await stat(join(project, 'portcullis-0.1.0.tgz'))).size).toBeGreaterThan(100_000)
})

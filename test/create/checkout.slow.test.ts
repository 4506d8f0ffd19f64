import { cp, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { builtPackage } from '../dev/start/build.ts'
import { type Checkout, makeCheckout } from '../dev/start/checkout.ts'
import { ROOT } from '../harness/process.ts'

let checkout: Checkout

beforeAll(async () => {
  checkout = await makeCheckout()
  for (const name of ['packages', 'docs', 'ops', 'README.md', 'CHANGELOG.md', 'LICENSE'])
    await cp(join(ROOT, name), join(checkout.path, name), { recursive: true })
  await cp(await builtPackage(), join(checkout.path, 'dist'), { recursive: true })
}, 120_000)

afterAll(() => checkout?.close())

test('npm run create in a checkout writes a project with the package of the checkout', async () => {
  const { create } = JSON.parse(await checkout.file('package.json')).scripts
  expect(create).toBe('npm run -s build && node dev/create.ts')
  const args = ['my-server', '--kind', 'mcp', '--json', '--no-git']
  // The build is there.
  const { code, stdout, stderr } = await checkout.run(['node', 'dev/create.ts', ...args]).ended
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(JSON.parse(stdout).next).toEqual(['cd my-server', 'npm install', 'npm start'])
  const project = join(checkout.path, 'my-server')
  const manifest = JSON.parse(await readFile(join(project, 'package.json'), 'utf8'))
  expect(manifest.dependencies.portcullis).toBe('file:./portcullis-0.1.0.tgz')
  expect((await stat(join(project, 'portcullis-0.1.0.tgz'))).size).toBeGreaterThan(100_000)
})

/** Commands for gateways say what to do with an app that guards its own routes. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runCli } from './command-line.ts'

let folder: string

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'portcullis-app-'))
  await mkdir(join(folder, 'src'))
  const manifest = { type: 'module', dependencies: { portcullis: '*' } }
  await writeFile(join(folder, 'package.json'), JSON.stringify(manifest))
  await writeFile(join(folder, 'wrangler.toml'), 'name = "notes"\nmain = "src/app.ts"\n')
  await writeFile(join(folder, 'src/app.ts'), "import { portcullis } from 'portcullis/hono'\n")
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const RULE = 'the options of an app are in its code, and its first request names every mistake'

test.each([
  [['deploy', '--plan'], 'this command deploys gateways; deploy it with `npx wrangler deploy`'],
  [['deploy', 'rollback'], 'undo a deployment with `npx wrangler rollback`'],
  [['doctor'], `this command checks gateways; ${RULE}`],
])('%j names the commands for an app, and makes no call', async (args, message) => {
  const env = { CLOUDFLARE_API_TOKEN: 'x', CLOUDFLARE_ACCOUNT_ID: 'x' }
  const unreachable = { CLOUDFLARE_API_BASE_URL: 'http://127.0.0.1:9' }
  const { code, stdout, stderr } = await runCli(args, {
    cwd: folder,
    env: { ...env, ...unreachable },
  })
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toContain(`is an app that guards its own routes (src/app.ts)`)
  expect(stderr).toContain(message)
})

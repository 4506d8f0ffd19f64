import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { commandsOf, DRY_RUN } from '../../docs/documents.ts'
import { type Checkout, makeCheckout } from './checkout.ts'

describe('npm run deploy', () => {
  let checkout: Checkout

  beforeAll(async () => {
    checkout = await makeCheckout()
  })

  afterAll(() => checkout.close())

  it('bundles every Worker in a dry run, in the order of their bindings, and leaves only configurations', async () => {
    // Of its own, because other tests deploy at the same time.
    const scratch = join(checkout.path, 'scratch')
    await mkdir(scratch)
    expect(commandsOf('docs/deploy.md').map(({ text }) => text)).toContain(DRY_RUN)
    const env = { TMPDIR: scratch, npm_config_loglevel: 'silent' }
    const { code, stdout, stderr } = await checkout.run(['sh', '-euc', DRY_RUN], env).ended
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const size = String.raw`: \d+\.\d KiB, gzip \d+\.\d KiB\n`
    expect(stdout).toMatch(
      new RegExp(
        `^portcullis-origin${size}portcullis-audit${size}portcullis${size}Nothing was deployed.\n$`,
      ),
    )
    expect(await readdir(scratch)).not.toContainEqual(expect.stringMatching(/^portcullis-deploy-/))
    expect(await readdir(join(checkout.path, '.portcullis'))).toEqual(['.gitignore', 'production'])
  })

  it('names every missing value before it creates anything', async () => {
    const { code, stdout, stderr } = await checkout.run(['node', 'dev/deploy.ts']).ended
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    for (const name of ['CLOUDFLARE_API_TOKEN', 'UPSTASH_REDIS_REST_TOKEN'])
      expect(stderr).toContain(`${name}: is missing`)
  })

  it('names a Worker that does not bundle, with the error', async () => {
    const broken = await makeCheckout()
    await writeFile(join(broken.path, 'workers', 'audit.ts'), "import 'nowhere'\n")
    const { code, stderr } = await broken.run(['node', 'dev/deploy.ts', '--dry-run']).ended
    await broken.close()
    expect(code).toBe(1)
    expect(stderr).toContain('workers/audit.toml')
    expect(stderr).toContain('Could not resolve "nowhere"')
  })
})

/** A project that depends on this checkout, for `portcullis serve`. */
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ROOT } from '../harness/process.ts'

export type NodeProject = Awaited<ReturnType<typeof makeNodeProject>>

/** Creates the project, with the policy of `policy.ts`. Its gateway is the source, not the last build. */
export async function makeNodeProject() {
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-node-'))
  const installed = join(folder, 'node_modules/portcullis')
  await mkdir(installed, { recursive: true })
  await symlink(join(ROOT, 'src'), join(installed, 'src'))
  const manifest = { name: 'portcullis', exports: { './node': './src/node/index.ts' } }
  await writeFile(join(installed, 'package.json'), JSON.stringify(manifest))
  const project = { type: 'module', dependencies: { portcullis: '*' } }
  await writeFile(join(folder, 'package.json'), JSON.stringify(project))
  const policy = join(ROOT, 'test/node/policy.ts')
  await writeFile(
    join(folder, 'portcullis.config.ts'),
    `export { default } from ${JSON.stringify(policy)}\n`,
  )
  return { folder, close: () => rm(folder, { recursive: true }) }
}

/** A project that depends on this checkout, for commands that load its policy. */
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ROOT } from '../../harness/process.ts'

/** Creates the project, with a policy. Its `portcullis` is the source of this checkout, not the last build. */
export async function makeNodeProject(policy: string) {
  const folder = await mkdtemp(join(tmpdir(), 'portcullis-node-'))
  const installed = join(folder, 'node_modules/portcullis')
  await mkdir(installed, { recursive: true })
  await symlink(join(ROOT, 'src'), join(installed, 'src'))
  const exports = {
    '.': './src/index.ts',
    './node': './src/runtimes/node/index.ts',
    './operators': './src/features/operators/index.ts',
    './origins': './src/features/origins/index.ts',
    './relations': './src/features/relations/index.ts',
    './testing': './src/testing/index.ts',
  }
  await writeFile(join(installed, 'package.json'), JSON.stringify({ type: 'module', exports }))
  const manifest = { type: 'module', dependencies: { portcullis: '*' } }
  await writeFile(join(folder, 'package.json'), JSON.stringify(manifest))
  await writeFile(join(folder, 'portcullis.config.ts'), policy)
  return { folder, close: () => rm(folder, { recursive: true }) }
}

/**
 * `npm run create -- DIRECTORY`: creates a project that depends on this checkout. It packs the last build, and starts
 * the command of `packages/create-portcullis` with the tarball. Paths are relative to the folder in which npm was started.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { packPackage } from './package/pack.ts'
import { ROOT } from './root.ts'

const MAIN = join(ROOT, 'packages/create-portcullis/src/main.ts')

const folder = mkdtempSync(join(tmpdir(), 'portcullis-create-'))
try {
  const { filename } = packPackage(folder)
  const args = [MAIN, '--package', join(folder, filename), ...process.argv.slice(2)]
  const cwd = process.env.INIT_CWD ?? process.cwd()
  const { status } = spawnSync(process.execPath, args, { cwd, stdio: 'inherit' })
  process.exitCode = status ?? 1
} catch (error) {
  console.error(`create: ${(error as Error).message}`)
  process.exitCode = 1
} finally {
  rmSync(folder, { recursive: true, force: true })
}

/** `npm run deploy`: checks the model of the checkout, then runs `portcullis deploy`. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { checkModelIn } from './model/file.ts'
import { ROOT } from './start/settings.ts'

try {
  await checkModelIn(ROOT)
} catch (error) {
  console.error(`deploy: ${(error as Error).message}`)
  process.exit(1)
}
const command = [join(ROOT, 'cli', 'main.ts'), 'deploy', ...process.argv.slice(2)]
const { status } = spawnSync(process.execPath, command, { cwd: ROOT, stdio: 'inherit' })
process.exit(status ?? 1)

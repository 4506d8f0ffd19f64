/** `npm run lua`: writes the TypeScript modules that contain the Lua scripts of Redis. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { readLuaFiles } from './lua/embed.ts'
import { ROOT } from './start/settings.ts'

for (const [path, text] of await readLuaFiles(join(ROOT, 'src')).modules()) {
  if (textOf(path) === text) continue
  writeFileSync(path, text)
  console.log(`${relative(ROOT, path)} is written`)
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

/** Lua scripts of which a test replaces a part. */
import { join } from 'node:path'
import { readLuaFiles } from '../../dev/lua/embed.ts'
import { ROOT } from './process.ts'

const SOURCES = join(ROOT, 'src')
const files = readLuaFiles(SOURCES)

/** Returns a script, by its path in `src`, with the names of its source: they change no instruction of it. */
export const readableScript = (path: string): Promise<string> =>
  files.embeddedOf(join(SOURCES, path), true)

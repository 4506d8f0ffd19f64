/**
 * `npm run package -- FOLDER`: packs the built package. Its README is `dev/package/README.md`. The guides link to
 * documents that only the repository has; in the package, such a link is its text, and so is a picture.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, normalize, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ROOT } from '../root.ts'
import { published, requireFiles } from './manifest.ts'

export interface Packed {
  readonly filename: string
  readonly size: number
  readonly unpackedSize: number
  readonly files: readonly { readonly path: string }[]
}

/** Packs the build of this checkout into a folder. Throws if there is no build. */
export function packPackage(destination: string): Packed {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-pack-'))
  try {
    const paths = new Set(npmPack(ROOT, '--dry-run').files.map(({ path }) => path))
    requireFiles(readFileSync(join(ROOT, 'package.json'), 'utf8'), paths)
    for (const path of paths) {
      mkdirSync(dirname(join(folder, path)), { recursive: true })
      if (path.endsWith('.md')) {
        writeFileSync(join(folder, path), packedDocument(path, paths))
      } else if (path === 'package.json') {
        writeFileSync(join(folder, path), published(readFileSync(join(ROOT, path), 'utf8')))
      } else {
        cpSync(join(ROOT, path), join(folder, path))
      }
    }
    mkdirSync(destination, { recursive: true })
    return npmPack(folder, '--pack-destination', destination)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function npmPack(cwd: string, ...options: readonly string[]): Packed {
  const args = ['pack', '--ignore-scripts', '--json', ...options]
  const output = execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: 'pipe' })
  const [packed] = Object.values(JSON.parse(output)) as Packed[]
  if (packed === undefined) throw new Error('npm pack reported no package')
  return packed
}

const README = 'dev/package/README.md'

/** Returns a document as it is in a package with these paths. */
export function packedDocument(path: string, paths: ReadonlySet<string>): string {
  const text = (file: string) => readFileSync(join(ROOT, file), 'utf8')
  const markdown = path === 'README.md' ? text(README).replaceAll('](../../', '](') : text(path)
  return withoutDeadLinks(markdown, dirname(path), paths)
}

/** A fenced block, a link or a picture, or inline code. Only a link or a picture has groups. */
const BLOCK_LINK_OR_CODE =
  /^ *```[\s\S]*?^ *```$|!?\[((?:`[^`\n]*`|[^\]`])*)\]\(([^)\s]+)\)|`[^`\n]*`/gm

/** Replaces links to files that are not among these paths by their text. */
function withoutDeadLinks(markdown: string, folder: string, paths: ReadonlySet<string>): string {
  return markdown.replace(BLOCK_LINK_OR_CODE, (whole, text?: string, target?: string) => {
    if (text === undefined || target === undefined || /^(?:#|[a-z]+:)/.test(target)) return whole
    const [file = ''] = target.split('#')
    return paths.has(normalize(join(folder, file))) ? whole : text
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    const { filename } = packPackage(resolve(process.argv[2] ?? '.'))
    console.log(filename)
  } catch (error) {
    console.error(`package: ${(error as Error).message}`)
    process.exit(1)
  }
}

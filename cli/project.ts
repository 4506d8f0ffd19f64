/** Finds the project that a command runs in. */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { CREATE_COMMAND } from '../dev/start/main-config.ts'
import { usage } from './failure.ts'

const PACKAGE = 'portcullis'

interface Manifest {
  readonly name?: unknown
  readonly dependencies?: Readonly<Record<string, unknown>>
  readonly devDependencies?: Readonly<Record<string, unknown>>
}

/**
 * Returns the nearest folder, from `folder` upwards, that is a checkout of this package or depends
 * on it. Returns undefined if there is none.
 */
export function projectAround(folder: string): string | undefined {
  const manifest = join(folder, 'package.json')
  if (existsSync(manifest) && usesPackage(manifest)) return folder
  const parent = dirname(folder)
  return parent === folder ? undefined : projectAround(parent)
}

/** Returns the same folder. Throws a usage failure if there is none. */
export function requireProject(folder: string): string {
  const root = projectAround(folder)
  if (root !== undefined) return root
  throw usage(
    `no package.json in ${folder} or above depends on portcullis; ` +
      `${CREATE_COMMAND} creates a project`,
  )
}

function usesPackage(file: string): boolean {
  try {
    const manifest = JSON.parse(readFileSync(file, 'utf8')) as Manifest
    return (
      manifest.name === PACKAGE ||
      Object.hasOwn({ ...manifest.dependencies, ...manifest.devDependencies }, PACKAGE)
    )
  } catch {
    return false
  }
}

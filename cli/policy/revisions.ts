/** Loads policies from files, and from revisions of a Git repository. */
import { execFileSync, spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import type { Policy } from '../../src/policy/policy.ts'
import { requirePolicy } from '../../src/policy/policy.ts'
import { REFUSED, usage } from '../failure.ts'
import { invalidPolicy } from './invalid.ts'
import { loadPolicy, policyFile } from './load.ts'

/** An archive of a repository is this large at most. */
const MAX_ARCHIVE_BYTES = 1_073_741_824

/**
 * Creates a loader for the project in `root`. A revision is unpacked into a temporary folder, in which
 * imports of the policy resolve. Packages are those that the project has now.
 */
export function openRevisions(folder: string, root: string) {
  const unpacked = new Map<string, string>()

  function git(...args: readonly string[]): string {
    try {
      return execFileSync('git', args, { cwd: folder, encoding: 'utf8', stdio: 'pipe' }).trimEnd()
    } catch (error) {
      const { code, stderr } = error as NodeJS.ErrnoException & { readonly stderr?: string }
      if (code === 'ENOENT') throw usage('there is no git on the PATH, so revisions cannot be read')
      throw usage(
        `git: ${
          String(stderr ?? '')
            .trim()
            .split('\n')[0]
        }`,
      )
    }
  }

  /** Returns the commit of a revision. Throws a usage failure if there is none. */
  function commitOf(revision: string): string {
    const verify = ['rev-parse', '--verify', '--end-of-options', `${revision}^{commit}`] as const
    if (succeeds(...verify)) return git(...verify)
    if (succeeds('rev-parse', '--verify', 'HEAD'))
      throw usage(
        `there is no revision ${revision} in this Git repository; \`git branch -a\` and \`git tag\` list the names`,
      )
    throw usage('this Git repository has no commits yet, so there is no revision to compare with')
  }

  const succeeds = (...args: readonly string[]): boolean =>
    spawnSync('git', args, { cwd: folder, stdio: 'ignore' }).status === 0

  /** Returns the folder with the files of a revision. */
  function unpack(revision: string, top: string): string {
    const commit = commitOf(revision)
    const known = unpacked.get(commit)
    if (known !== undefined) return known
    const target = realpathSync(mkdtempSync(join(tmpdir(), 'portcullis-revision-')))
    unpacked.set(commit, target)
    const archive = execFileSync('git', ['archive', '--format=tar', commit], {
      cwd: top,
      maxBuffer: MAX_ARCHIVE_BYTES,
    })
    execFileSync('tar', ['-x', '-f', '-', '-C', target], { input: archive })
    // Packages of the project, and of a workspace around it.
    for (let from = root; ; from = dirname(from)) {
      const packages = join(from, 'node_modules')
      const link = join(target, relative(top, packages))
      mkdirSync(dirname(link), { recursive: true })
      if (existsSync(packages) && !existsSync(link)) symlinkSync(packages, link, 'junction')
      if (from === top || !from.startsWith(top)) break
    }
    return target
  }

  /** `nameOf` names the files of the policy in messages. */
  async function loadChecked(
    file: string,
    shown: string,
    nameOf: (path: string) => string,
  ): Promise<Policy> {
    try {
      const policy = await loadPolicy(file, root)
      requirePolicy(policy)
      return policy
    } catch (error) {
      if (!(error instanceof Error) || error.name !== 'Misconfigured') throw error
      throw invalidPolicy(REFUSED, shown, error, { path: file, nameOf })
    }
  }

  async function loadFrom(revision: string, path: string): Promise<Policy> {
    const top = realpathSync(git('rev-parse', '--show-toplevel'))
    const from = path.startsWith('.') ? realpathSync(folder) : top
    const target = unpack(revision, top)
    const file = join(target, relative(top, resolve(from, path)))
    if (!statSync(file, { throwIfNoEntry: false })?.isFile())
      throw usage(`${revision} has no file ${path}`)
    return await loadChecked(
      file,
      `${revision}:${path}`,
      (read) => `${revision}:${relative(target, read)}`,
    )
  }

  return {
    /**
     * Loads `file`, or `revision:path` with the path from the root of the repository, or from `./`.
     * `option` is the argument that names it, for messages. Default `policy diff`.
     */
    async load(spec: string, option: string = 'policy diff'): Promise<Policy> {
      const [, revision, path] = /^([^:]+):(.+)$/s.exec(spec) ?? []
      if (revision === undefined || path === undefined || existsSync(resolve(folder, spec)))
        return await loadChecked(policyFile(spec, option, folder, root), spec, (read) =>
          relative(folder, read),
        )
      return await loadFrom(revision, path)
    },
    async loadAt(revision: string, file: string): Promise<Policy> {
      const path = relative(realpathSync(folder), realpathSync(file))
      return await loadFrom(revision, path.startsWith('.') ? path : `./${path}`)
    },
    /** Removes the temporary folders. */
    close(): void {
      for (const target of unpacked.values()) rmSync(target, { recursive: true, force: true })
    },
  }
}

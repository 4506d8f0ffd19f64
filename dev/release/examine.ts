/** What a release must have before anything is published. */

export interface Release {
  /** The text of `package.json`. */
  readonly manifest: string
  /** The text of `CHANGELOG.md`. */
  readonly changelog: string
  /** The tag of the release, such as `v1.2.0`. */
  readonly tag: string
}

interface Manifest {
  readonly version?: string
  readonly private?: boolean
  readonly repository?: string | { readonly url?: string }
}

/** Returns why the release must not be published. Empty: it may be. */
export function mistakesInRelease({ manifest, changelog, tag }: Release): readonly string[] {
  const { version = '', private: isPrivate, repository } = JSON.parse(manifest) as Manifest
  const url = typeof repository === 'string' ? repository : repository?.url
  const mistakes: string[] = []
  if (url === undefined || url.trim() === '')
    mistakes.push(
      'package.json: repository is empty; set it to the address of this repository, which the provenance names',
    )
  if (isPrivate === true) mistakes.push('package.json: private is true')
  if (tag !== `v${version}`)
    mistakes.push(`the tag ${tag} is not v${version}, the version in package.json`)
  const title = titleOf(changelog, version)
  if (title === undefined) mistakes.push(`CHANGELOG.md: there is no section [${version}]`)
  else if (!/ - \d{4}-\d\d-\d\d$/.test(title))
    mistakes.push(`CHANGELOG.md: the section [${version}] has no date, such as 2026-11-27`)
  return mistakes
}

/** Returns the section of a version in the changelog, without its title. Empty: there is none. */
export function notesOf(changelog: string, version: string): string {
  const lines = changelog.split('\n')
  const begin = lines.findIndex((line) => isTitleOf(line, version))
  if (begin < 0) return ''
  const rest = lines.slice(begin + 1)
  const end = rest.findIndex((line) => line.startsWith('## '))
  return rest
    .slice(0, end < 0 ? rest.length : end)
    .join('\n')
    .trim()
}

const isTitleOf = (line: string, version: string): boolean => line.startsWith(`## [${version}]`)

const titleOf = (changelog: string, version: string): string | undefined =>
  changelog.split('\n').find((line) => isTitleOf(line, version))

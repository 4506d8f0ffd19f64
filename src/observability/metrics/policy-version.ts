/** The versions of the policy that isolates use, as names in their reports. */

export interface PolicyVersion {
  /** SHA-256 of its files, in hexadecimal digits. */
  readonly digest: string
  /** When the isolate began to use it, in seconds since the epoch. */
  readonly loadedSeconds: number
}

const NAME = /^policy:([^:]+):(\d+)$/

/** Returns the name of a version in a report, which lists it beside dependencies. */
export const nameOfVersion = ({ digest, loadedSeconds }: PolicyVersion): string =>
  `policy:${digest}:${loadedSeconds}`

/** Returns the version of a name. Undefined: it is the name of a dependency. */
export function readVersion(name: string): PolicyVersion | undefined {
  const [, digest, loaded] = NAME.exec(name) ?? []
  return digest === undefined ? undefined : { digest, loadedSeconds: Number(loaded) }
}

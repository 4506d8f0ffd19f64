/** The failure of a command whose policy has mistakes. */
import { type ExitCode, Failure, mistakesOf } from '../failure.ts'
import { findingsOf } from './mistakes.ts'
import { type Place, readSource } from './source.ts'

/** The file that defines the policy. */
export interface PolicyFile {
  readonly path: string
  /** Returns the name of a file of the policy for the message. */
  readonly nameOf: (path: string) => string
}

/**
 * Creates the failure for a policy with mistakes: one finding for each, with the text and the suggestion of `policy
 * check`, and its place if `file` is given. `error` is the `Misconfigured` of the project's own copy of the package.
 */
export function invalidPolicy(
  exitCode: ExitCode,
  shown: string,
  error: Error,
  file?: PolicyFile,
): Failure {
  const source = file && readSource(file.path)
  const findings = findingsOf(mistakesOf(error)).map((finding) => {
    const { path, message, suggestion, code, given, known, route } = finding
    const at = file && source ? `${placeText(source.placeOf({ path }), file)}: ` : ''
    const remedy = suggestion === undefined ? '' : `; ${suggestion}`
    const names = {
      ...(code && { code }),
      ...(given !== undefined && { given }),
      ...(known && { known }),
    }
    return {
      ...names,
      ...(route && { route }),
      in: '',
      path: '',
      message: `${at}${message}${remedy}`,
    }
  })
  return new Failure(exitCode, 'misconfigured', `${shown}: the policy is not valid`, { findings })
}

const placeText = ({ file, line, column, isExact }: Place, { nameOf }: PolicyFile): string =>
  `${nameOf(file)}:${line}:${column}${nearText(isExact)}`

/** Returns the remark for a place that is not exact. */
export const nearText = (isExact: boolean): string =>
  isExact ? '' : ' (nearest known place: code creates this part)'

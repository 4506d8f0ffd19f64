/** Results of decisions as text. */
import { Denied } from '../../src/errors.ts'

/** Returns the value, or `error:check` of the refusal. */
export function checkOf(decide: () => string): string {
  try {
    return decide()
  } catch (error) {
    if (!(error instanceof Denied) || error.denial.code !== 'oauth_refused') throw error
    return `${error.denial.error}:${error.denial.check}`
  }
}

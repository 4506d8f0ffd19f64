/** What the validating Worker says, and where. */

/** Verifies with a token cache, as it ships. */
export const VALIDATION_PATH = '/validation'
/** Verifies without one: every token is new to it. */
export const COLD_VALIDATION_PATH = '/validation/cold'

/** Who was found, and whether that was remembered. */
export function validationAnswer(subject: string, remembered: boolean): string {
  return remembered ? `${subject}, remembered` : subject
}

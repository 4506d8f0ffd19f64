/** A language in which no text of the pages is missing. */
import type { ENGLISH as AUTHORIZATION_CODE } from '../authorization-code/routes/english.ts'
import type { ENGLISH as SIGN_IN } from '../sign-in/rendering/english.ts'
import type { PageLanguage } from '../sign-in/rendering/language.ts'

/**
 * A `PageLanguage` with every text. A file that `satisfies` it does not compile after an update that adds a text;
 * with `PageLanguage`, the new text is English and the start names it.
 */
export interface CompleteLanguage extends PageLanguage {
  readonly texts: {
    readonly signIn: { readonly [Name in keyof typeof SIGN_IN]: string }
    readonly authorizationCode: { readonly [Name in keyof typeof AUTHORIZATION_CODE]: string }
    readonly scopes?: Readonly<Record<string, string>>
  }
}

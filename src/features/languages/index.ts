/**
 * The languages of the pages that people see: `import { german } from 'portcullis/languages'`, for
 * `branding.languages` of `signIn()`. A language that is not imported is in no bundle.
 */
export type { PageLanguage } from '../sign-in/rendering/language.ts'
export type { CompleteLanguage } from './complete-language.ts'
export { german } from './german.ts'

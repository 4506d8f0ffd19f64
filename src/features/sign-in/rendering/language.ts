/** The languages of the pages: their texts, and the choice for a request. */
import type { Context } from 'hono'
import { html } from 'hono/html'
import { withSuggestion } from '../../../suggestions/did-you-mean.ts'
import type { PageContent } from './content.ts'
import type { ENGLISH } from './english.ts'

/** A language of the pages. A text that it does not have is shown in English. */
export interface PageLanguage {
  /** The language tag (BCP 47): `fr`, `pt-BR`. It is also the `lang` of the pages, and formats times and numbers. */
  readonly tag: string
  /** The direction of the script. Default `ltr`. */
  readonly direction?: 'ltr' | 'rtl'
  /** Texts by group and name. The names are those of `german`. */
  readonly texts: {
    /** The pages of the sign-in, and refused navigations. */
    readonly signIn?: { readonly [Name in keyof typeof ENGLISH]?: string }
    /** The pages of `authorizationCode()`: consent, and the apps with access. */
    readonly authorizationCode?: Readonly<Record<string, string>>
    /** Words for permissions, as `scopes` of `authorizationCode()`. */
    readonly scopes?: Readonly<Record<string, string>>
  }
}

type Texts = Readonly<Record<string, string>>
type SlotsOf<Text> = Text extends `${string}{${infer Name}}${infer Rest}`
  ? Name | SlotsOf<Rest>
  : never

/** Returns a text, with its slots filled. */
export type Say<English extends Texts> = <Name extends keyof English>(
  name: Name,
  ...slots: [SlotsOf<English[Name]>] extends [never]
    ? []
    : [{ readonly [Slot in SlotsOf<English[Name]>]: PageContent }]
) => PageContent

const SLOT = /\{(\w+)\}/

/** Creates the function that returns the texts of a feature in a language. */
export const textsOf =
  <const English extends Texts>(feature: keyof PageLanguage['texts'], english: English) =>
  (language: PageLanguage): Say<English> => {
    const given: Texts = language.texts[feature] ?? {}
    return (name, ...[slots]) => {
      const key = String(name)
      const isGiven = Object.hasOwn(given, key)
      const text = (isGiven ? given[key] : english[key]) ?? ''
      const values: Readonly<Record<string, PageContent>> = slots ?? {}
      const isMarked = !isGiven && !isEnglish(language)
      // At odd places, the parts are the names of slots. Their values have a language of their own.
      const parts = text
        .split(SLOT)
        .map((part, at) => (at % 2 ? values[part] : isMarked ? inEnglish(language, part) : part))
      if (parts.length > 1) return html`${parts}`
      return parts[0] ?? ''
    }
  }

/** Reports whether the language of a page is English, so that its English texts need no mark. */
const isEnglish = ({ tag }: PageLanguage): boolean => /^en(?:-|$)/i.test(tag)

/** The plain text of each marked text, because the title of a document has no markup. */
const unmarked = new WeakMap<object, string>()

/** Marks a part of a page in another language (WCAG 2.2, 3.1.2), with the direction of its script. */
function inEnglish({ direction }: PageLanguage, text: string): PageContent {
  if (text === '') return text
  const marked = html`<span lang="en"${direction === 'rtl' && html` dir="ltr"`}>${text}</span>`
  unmarked.set(marked, text)
  return marked
}

/** Returns a text for a place without markup. `isEnglish`: the text is English, and the page is in another language. */
export function withoutMark(text: PageContent) {
  const marked = typeof text === 'object' ? unmarked.get(text) : undefined
  return { text: marked ?? text, isEnglish: marked !== undefined }
}

/**
 * Marks a text of the policy or of another party, whose language is not stated. Without the mark, a screen reader reads it in
 * the language of the page.
 */
export const inUnknownLanguage = (language: PageLanguage, text: string): PageContent =>
  isEnglish(language) ? text : html`<span lang="">${text}</span>`

/** Yields a message for each text that the feature does not have, and for each with other slots. */
export function* mistakesInTexts(
  given: Texts,
  english: Texts,
): Generator<readonly [string, string]> {
  const names = Object.keys(english)
  for (const [name, text] of Object.entries(given)) {
    const original = Object.hasOwn(english, name) ? english[name] : undefined
    const expected = slotsIn(original ?? '')
    if (original === undefined) yield [name, withSuggestion('no page has this text', name, names)]
    else if (slotsIn(text) !== expected)
      yield [name, expected === '' ? 'must have no braces' : `must contain ${expected}, each once`]
  }
}

const slotsIn = (text: string): string => (text.match(/\{[^}]*\}?|\}/g) ?? []).toSorted().join(' ')

/** Reports a language with missing texts, once, when the gateway starts. */
export function reportMissing(
  languages: readonly PageLanguage[],
  feature: keyof PageLanguage['texts'],
  english: Texts,
): void {
  for (const { tag, texts } of languages) {
    const given = texts[feature] ?? {}
    const [first, ...others] = Object.keys(english).filter((name) => !Object.hasOwn(given, name))
    // A language with the tag `en` replaces some texts.
    if (first === undefined || tag === DEFAULT_LANGUAGE.tag) continue
    const more = others.length === 0 ? '' : ` and ${others.length} more`
    console.warn(
      `languages: ${tag} has no text ${feature}["${first}"]${more}; pages show it in English`,
    )
  }
}

export const DEFAULT_LANGUAGE: PageLanguage = { tag: 'en', texts: {} }

const MAX_PREFERENCE_CHARACTERS = 512
const MAX_PREFERENCES = 20
const PREFERRED = 'portcullis.uiLocales' as never

/** Stores `ui_locales` of a request (OpenID Connect Core section 3.1.2.1), which comes before `Accept-Language`. */
export const preferLocales = (c: Context, locales: string | undefined): void =>
  c.set(PREFERRED, locales as never)

/** Returns the language that the user of a request prefers, and English if there is none. */
export function languageOf(c: Context, languages: readonly PageLanguage[]): PageLanguage {
  const preferred = (c.get(PREFERRED) as string | undefined) ?? ''
  const accepted = c.req.header('Accept-Language') ?? ''
  const known = [...languages, DEFAULT_LANGUAGE]
  for (const range of [...rangesIn(preferred, ' '), ...rangesIn(accepted, ',')]) {
    const found = lookUp(range, known)
    if (found !== undefined) return found
  }
  return lookUp(DEFAULT_LANGUAGE.tag, known) ?? DEFAULT_LANGUAGE
}

/** Returns the ranges of a list, the preferred one first. Quality 0 means that the language is not wanted. */
function rangesIn(list: string, separator: string): readonly string[] {
  if (list.length > MAX_PREFERENCE_CHARACTERS) return []
  return list
    .split(separator, MAX_PREFERENCES)
    .map((item) => {
      const [range = '', quality] = item.split(';')
      const weight = /^\s*q=([01](?:\.\d{0,3})?)\s*$/i.exec(quality ?? 'q=1')?.[1]
      return { range: range.trim().toLowerCase(), weight: Number(weight ?? 0) }
    })
    .filter(({ weight }) => weight > 0)
    .toSorted((one, other) => other.weight - one.weight)
    .map(({ range }) => range)
}

/** RFC 4647 section 3.4: `de-AT` is served by `de`. Beyond it, `pt` is served by `pt-BR`. */
function lookUp(range: string, languages: readonly PageLanguage[]): PageLanguage | undefined {
  const tagged = (wanted: string) => languages.find(({ tag }) => tag.toLowerCase() === wanted)
  for (let at = range.length; at > 0; at = range.lastIndexOf('-', at - 1)) {
    const found = tagged(range.slice(0, at))
    if (found !== undefined) return found
  }
  const [primary = ''] = range.split('-')
  return languages.find(({ tag }) => tag.toLowerCase().startsWith(`${primary}-`))
}

/** Returns a time such as `Nov 27, 2026, 05:30 PM UTC`, in the words of the language. */
export const formatTime = ({ tag }: PageLanguage, seconds: number): PageContent =>
  timeElement(
    seconds,
    new Intl.DateTimeFormat(tag, {
      year: 'numeric',
      month: 'short',
      day: 'numeric',
      hour: '2-digit',
      minute: '2-digit',
      timeZone: 'UTC',
      timeZoneName: 'short',
    }),
  )

/** Returns a day such as `Nov 27, 2026`. */
export const formatDay = ({ tag }: PageLanguage, seconds: number): PageContent =>
  timeElement(seconds, new Intl.DateTimeFormat(tag, { dateStyle: 'medium', timeZone: 'UTC' }))

function timeElement(seconds: number, format: Intl.DateTimeFormat): PageContent {
  const date = new Date(seconds * 1_000)
  return html`<time datetime="${date.toISOString()}">${format.format(date)}</time>`
}

/** Returns a time such as `90 seconds`, `3 minutes` or `5 hours`, rounded up. */
export function formatDuration({ tag }: PageLanguage, seconds: number): string {
  const minutes = Math.ceil(seconds / 60)
  const [value, unit] =
    seconds < 120
      ? [seconds, 'second']
      : minutes < 120
        ? [minutes, 'minute']
        : [Math.ceil(minutes / 60), 'hour']
  return new Intl.NumberFormat(tag, { style: 'unit', unit, unitDisplay: 'long' }).format(value)
}

/** Returns the name of a country by its code (ISO 3166-1), and the code of an unknown one. */
export const formatCountry = ({ tag }: PageLanguage, code: string): string =>
  new Intl.DisplayNames(tag, { type: 'region' }).of(code) ?? code

/** How the pages look, and whose they are. */
import type { PageLanguage } from './language.ts'

/** Whose the pages are. */
export interface Branding {
  /** The name of the service, above every page. Default none. */
  readonly name?: string
  /**
   * A picture beside the name: a path of this host such as `/logo.svg`, which must need no session, or a
   * `data:` URL of PNG, JPEG, WebP or SVG in base64 of at most 32,768 characters. Default none.
   */
  readonly logo?: string
  /** Links below every page: `https:` URLs, or paths of this host. Default none. */
  readonly links?: {
    /** The privacy notice. */
    readonly privacy?: string
    /** The terms of use. */
    readonly terms?: string
    /** Help for users. */
    readonly support?: string
  }
  /**
   * The languages of the pages besides English, such as `german` from `portcullis/languages`. A person gets the one
   * that `ui_locales` of an authorization request or `Accept-Language` prefers. Default none.
   */
  readonly languages?: readonly PageLanguage[]
}

/** The variables of the style, and their default values. A policy may replace the values. */
const DEFAULT_THEME = {
  font: 'system-ui, sans-serif',
  background: 'Canvas',
  text: 'CanvasText',
  accent: '#0b57c2',
  radius: '8px',
} as const satisfies Required<PageTheme>

export interface PageTheme {
  /** Fonts of the text. Default `system-ui, sans-serif`. */
  readonly font?: string
  /** Color of the page. Default `Canvas`. */
  readonly background?: string
  /** Color of the text. Default `CanvasText`. */
  readonly text?: string
  /** Color of links and buttons. Default a blue: `#0b57c2`, in dark `#8ab8ff` if the theme has no color. */
  readonly accent?: string
  /** Radius of corners. Default `8px`. */
  readonly radius?: string
}

/** Returns the style of the pages. The theme has been checked: see `signInSchema`. */
export function formatStyle(theme: PageTheme): string {
  const variables = Object.entries({ ...DEFAULT_THEME, ...theme })
    .map(([name, value]) => `--portcullis-${name}: ${value};`)
    .join(' ')
  // The text of buttons has the color of the page, which would be light on light beside a color of the theme.
  const hasOwnColors = theme.accent ?? theme.background ?? theme.text
  const inDark =
    hasOwnColors === undefined
      ? '\n@media (prefers-color-scheme: dark) { :root { --portcullis-accent: #8ab8ff } }'
      : ''
  return `:root { color-scheme: light dark; ${variables} }${inDark}${RULES}`
}

const RULES = `
:root { --line: color-mix(in srgb, var(--portcullis-text) 20%, transparent);
  --edge: color-mix(in srgb, var(--portcullis-text) 60%, transparent); }
body { font: 1rem/1.5 var(--portcullis-font); background: var(--portcullis-background);
  color: var(--portcullis-text); max-width: 30rem; margin: 0 auto; padding: 8vh 1.25rem 2rem;
  overflow-wrap: anywhere; }
header { display: flex; align-items: center; gap: 0.75rem; font-weight: 600; margin-bottom: 1.25rem; }
header img { max-height: 2.5rem; max-width: 12rem; }
main { border: 1px solid var(--line); border-radius: calc(1.5 * var(--portcullis-radius)); padding: 1.75rem;
  box-shadow: 0 2px 12px rgb(0 0 0 / 0.08); }
main > :last-child { margin-bottom: 0; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 1rem; }
h2 { font-size: 1rem; margin: 0; }
a { color: var(--portcullis-accent); }
ul { list-style: none; padding: 0; }
.marks { list-style: disc; padding-inline-start: 1.25rem; }
.marks li { margin: 0.375rem 0; }
li, form { margin: 0.75rem 0; }
section, .item { border-top: 1px solid var(--line); padding: 1rem 0 0; }
.choice, button { display: flex; align-items: center; justify-content: center; gap: 0.75rem; box-sizing: border-box;
  width: 100%; min-height: 2.75rem; padding: 0.5rem 1rem; font: inherit; font-weight: 500; text-decoration: none;
  cursor: pointer; background: transparent; color: inherit; border: 1px solid var(--edge);
  border-radius: var(--portcullis-radius); }
.choice:hover, button:hover { border-color: var(--portcullis-accent); outline: 1px solid var(--portcullis-accent); }
.choice img { height: 1.5rem; width: 1.5rem; object-fit: contain; }
.main { font-weight: 600; background: var(--portcullis-accent); color: var(--portcullis-background);
  border-color: var(--portcullis-accent); }
.apart { margin-top: 1.5rem; }
section button, .item button { width: auto; min-height: 2.25rem; padding: 0.25rem 0.75rem; }
:focus-visible { outline: 3px solid var(--portcullis-accent); outline-offset: 2px; }
small { opacity: 0.88; }
details { margin: 0.5rem 0; }
time { white-space: nowrap; }
summary { cursor: pointer; padding: 0.25rem 0; }
.mark { font-size: 0.875rem; font-weight: 400; padding: 0.125rem 0.5rem; border: 1px solid; border-radius: 1rem;
  white-space: nowrap; }
footer { margin-top: 1.5rem; font-size: 0.875rem; }
footer a { margin-inline-end: 1rem; }
@media (max-width: 30rem) { body { padding-top: 1.5rem; } main { border: 0; box-shadow: none; padding: 0; } }
`

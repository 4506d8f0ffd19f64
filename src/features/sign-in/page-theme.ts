/** The variables of the pages' style. A policy may replace their values. */

/** The names of the variables, and their default values. */
const DEFAULT_THEME = {
  font: 'system-ui, sans-serif',
  background: 'Canvas',
  text: 'CanvasText',
  accent: 'LinkText',
  radius: '4px',
} as const

export type PageTheme = { readonly [Name in keyof typeof DEFAULT_THEME]?: string }

/** Returns the style of the pages. The theme has been checked: see `signInSchema`. */
export function formatStyle(theme: PageTheme): string {
  const variables = Object.entries({ ...DEFAULT_THEME, ...theme })
    .map(([name, value]) => `--portcullis-${name}: ${value};`)
    .join(' ')
  return `:root { color-scheme: light dark; ${variables} }${RULES}`
}

const RULES = `
body { font: 1.125rem/1.5 var(--portcullis-font); background: var(--portcullis-background);
  color: var(--portcullis-text); max-width: 32rem; margin: 10vh auto 0; padding: 1rem; }
h1 { font-size: 1.5rem; }
a { color: var(--portcullis-accent); }
ul { list-style: none; padding: 0; }
li, form { margin: 0.75rem 0; }
.choice, button { display: block; box-sizing: border-box; width: 100%; padding: 0.75rem 1rem;
  font: inherit; text-align: left; text-decoration: none; cursor: pointer; background: transparent;
  color: inherit; border: 2px solid var(--portcullis-accent);
  border-radius: var(--portcullis-radius); }
:focus-visible { outline: 3px solid var(--portcullis-accent); outline-offset: 2px; }
small { opacity: 0.8; }
`

/** Builds HTML and escapes text in it. */

/** Safe markup: all external text in it is escaped. */
export interface Html {
  readonly markup: string
}

type Piece = Html | readonly Html[] | string | number | undefined

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Escapes text, also for quoted attributes. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ESCAPES[character] ?? character)
}

/** Template tag for markup. Escapes every value that is not markup; `undefined` is empty. */
export function html(strings: TemplateStringsArray, ...pieces: readonly Piece[]): Html {
  return { markup: String.raw({ raw: strings }, ...pieces.map(markupOf)) }
}

/** Returns existing markup unchanged. Never pass text that was read from a file. */
export function trusted(markup: string): Html {
  return { markup }
}

function markupOf(piece: Piece): string {
  if (piece === undefined) return ''
  if (typeof piece === 'object') {
    return 'markup' in piece ? piece.markup : piece.map(({ markup }) => markup).join('')
  }
  return escapeHtml(String(piece))
}

/** Formats text; parts between backticks are code. */
export function prose(text: string): Html {
  const parts = text.split(/`([^`]+)`/)
  return html`${parts.map((part, index) =>
    index % 2 === 1 ? html`<code>${part}</code>` : html`${part}`,
  )}`
}

import { visible } from '../text.ts'

/** Returns text for a cell of a Markdown table, without effect on the table or on the page. */
export const markdownCell = (text: string): string =>
  visible(text)
    .replace(/[\\`*_[\]|#~]/g, '\\$&')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')

/** The sidebar of the site. Decisions and designs are listed from their folders. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PAGES, RECORDS } from './pages.ts'

interface Page {
  readonly text: string
  readonly link: string
}

interface Group {
  text: string
  items: Page[]
  collapsed?: boolean
}

export const DOCS = join(import.meta.dirname, '..')

/** Returns the sidebar of the site. Titles of other pages are their first headings. */
export function sidebar(): Group[] {
  return [
    ...PAGES.map(({ text, pages }) => ({ text, items: pages.map(pageOf) })),
    { text: RECORDS.text, items: RECORDS.pages.map(pageOf), collapsed: true },
    { text: 'Records: designs', items: pagesIn('design'), collapsed: true },
    { text: 'Records: decisions', items: pagesIn('decisions'), collapsed: true },
  ]
}

/** The pages of a folder of docs/, in the order of their names. */
function pagesIn(folder: string): Page[] {
  return readdirSync(join(DOCS, folder))
    .filter((file) => file.endsWith('.md'))
    .sort()
    .map((file) => pageOf(`${folder}/${file.slice(0, -'.md'.length)}`))
}

function pageOf(path: string): Page {
  if (path === 'index') return { text: 'Overview', link: '/' }
  const [, title = path] = /^# (.+)$/m.exec(readFileSync(join(DOCS, `${path}.md`), 'utf8')) ?? []
  return { text: title, link: `/${path}` }
}

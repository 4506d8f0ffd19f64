/**
 * `llms.txt`, `llms-full.txt` and the Markdown of each page, for programs that read the site. Their format is
 * described at https://llmstxt.org.
 */
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { PAGES, RECORDS } from './pages.ts'
import { DOCS, sidebar } from './sidebar.ts'

const markdownOf = (page: string): string => readFileSync(join(DOCS, `${page}.md`), 'utf8')

/** Returns the line that docs/index.md has about each page, by page. */
export function descriptions(): ReadonlyMap<string, string> {
  const items = markdownOf('index').matchAll(/^\* \[[^\]]+\]\(([\w-]+)\.md\): (.+)$/gm)
  return new Map([...items].map(([, page = '', text = '']) => [page, withoutLinks(text)]))
}

/** Writes the files to the folder of the built site. Links begin with `base`. */
export function writeForPrograms(folder: string, base: string): void {
  const groups = sidebar().slice(0, PAGES.length + 1)
  const known = descriptions()
  const listed = groups.map(({ text, items }) => {
    const heading = text === RECORDS.text ? 'Optional' : text
    const lines = items.map(({ text: title, link }) => {
      const page = link === '/' ? 'index' : link.slice(1)
      const about = known.get(page)
      return `- [${title}](${base}${page}.md)${about === undefined ? '' : `: ${about}`}`
    })
    return `## ${heading}\n\n${lines.join('\n')}\n`
  })
  const [, summary = ''] = /^# .+\n\n([\s\S]+?)\n\n/.exec(markdownOf('index')) ?? []
  const top = `# Portcullis\n\n> ${withoutLinks(summary).replaceAll('\n', ' ')}\n`
  writeFileSync(join(folder, 'llms.txt'), [top, ...listed].join('\n'))

  const pages = PAGES.flatMap(({ pages: names }) => names)
  writeFileSync(join(folder, 'llms-full.txt'), pages.map(markdownOf).join('\n\n'))
  for (const page of [...pages, ...RECORDS.pages]) {
    const file = join(folder, `${page}.md`)
    mkdirSync(dirname(file), { recursive: true })
    cpSync(join(DOCS, `${page}.md`), file)
  }
}

const withoutLinks = (text: string): string => text.replace(/\[([^\]]+)\]\([^)]+\)/g, '$1')

/** The documentation site: `npm run docs:dev`, `npm run docs:build`. Dead links fail the build. */
import { dirname, join, normalize } from 'node:path/posix'
import { defineConfig, type MarkdownOptions } from 'vitepress'
import { writeForPrograms } from './llms.ts'
import { searchableHtml, searchOptions, searchWords } from './search.ts'
import { sidebar } from './sidebar.ts'
import { slugOf } from './slug.ts'

type MarkdownIt = Parameters<NonNullable<MarkdownOptions['config']>>[0]

/** Base of links to files that are not on the site, such as `https://github.com/<owner>/<name>/blob/main`. */
const { DOCS_SOURCE_URL } = process.env

/** Path below which the site is served, such as `/portcullis/`. */
const BASE = process.env.DOCS_BASE ?? '/'

export default defineConfig({
  title: 'Portcullis',
  description: 'Authentication and admission in front of HTTP APIs',
  base: BASE,
  cleanUrls: true,
  head: [['link', { rel: 'icon', type: 'image/svg+xml', href: `${BASE}favicon.svg` }]],
  markdown: { anchor: { slugify: slugOf }, config: linkOutside },
  buildEnd: ({ outDir }) => writeForPrograms(outDir, BASE),
  themeConfig: {
    nav: [
      { text: 'Quick start', link: '/#quick-start' },
      { text: 'Configuration', link: '/configuration' },
      { text: 'Errors', link: '/errors' },
    ],
    search: {
      provider: 'local',
      options: {
        _render: searchableHtml,
        miniSearch: { options: searchWords, searchOptions },
      },
    },
    sidebar: sidebar(),
    outline: [2, 3],
  },
})

/** Links to files outside docs/ lead to the repository, or are plain text if its address is not set. */
function linkOutside(md: MarkdownIt): void {
  md.core.ruler.push('link_outside', ({ tokens, env }) => {
    const { relativePath } = env as { readonly relativePath: string }
    for (const { children } of tokens) {
      let isOutside = false
      for (const token of children ?? []) {
        if (token.type === 'link_open') {
          const href = token.attrGet('href') ?? ''
          const path = normalize(join('docs', dirname(relativePath), href))
          isOutside = !/^([a-z]+:|#|\/)/.test(href) && !path.startsWith('docs/')
          if (!isOutside) continue
          if (DOCS_SOURCE_URL === undefined) token.type = 'text'
          else token.attrSet('href', `${DOCS_SOURCE_URL}/${path}`)
        } else if (token.type === 'link_close' && isOutside && DOCS_SOURCE_URL === undefined) {
          token.type = 'text'
        }
      }
    }
  })
}

/** The size of the README, and every relative link of every Markdown file. */
import { existsSync, statSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { describe, expect, test } from 'vitest'
import { sidebar } from '../../docs/.vitepress/sidebar.ts'
import { slugOf } from '../../docs/.vitepress/slug.ts'
import { ROOT } from '../harness/process.ts'
import { outlineOf } from './blocks.ts'
import { DOCUMENTS, readDocument } from './documents.ts'

const README_MAX_BYTES = 9_216

test('README.md fits on about one screen', () => {
  expect(statSync(join(ROOT, 'README.md')).size).toBeLessThanOrEqual(README_MAX_BYTES)
})

test('every kind of document is checked', () => {
  expect(DOCUMENTS).toContain('README.md')
  expect(DOCUMENTS).toContain('docs/configuration.md')
  expect(DOCUMENTS).toContain('bench/README.md')
  expect(DOCUMENTS.filter((path) => path.startsWith('docs/decisions/')).length).toBeGreaterThan(40)
})

test('each decision record has a number of its own', () => {
  const numbers = DOCUMENTS.flatMap((path) => /^docs\/decisions\/(\d{4})-/.exec(path)?.[1] ?? [])
  expect(numbers).toEqual([...new Set(numbers)])
})

/** A document without fenced blocks and inline code. */
const proseOf = (markdown: string): string => outlineOf(markdown).prose.replace(/`[^`\n]*`/g, '')

/** Targets of links and images that are not addresses of other sites. */
function relativeLinks(markdown: string): string[] {
  const targets = [...proseOf(markdown).matchAll(/\]\(\s*<?([^)>\s]+)/g)].map(([, to = '']) => to)
  return [...new Set(targets.filter((target) => !/^[a-z][a-z+.-]*:/i.test(target)))]
}

/** Text of a heading as it is shown: links without targets, code without backticks. */
const shown = (heading: string): string =>
  heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll('`', '')

/** Anchors of a document. A repeated heading gets a number. */
function anchorsOf(markdown: string): ReadonlySet<string> {
  const anchors = new Set<string>()
  for (const heading of outlineOf(markdown).headings) {
    const slug = slugOf(shown(heading))
    let anchor = slug
    for (let count = 1; anchors.has(anchor); count++) anchor = `${slug}-${count}`
    anchors.add(anchor)
  }
  return anchors
}

/** Returns what is wrong with a link of a document, or undefined. */
function faultOf(document: string, target: string): string | undefined {
  const [path = '', anchor] = target.split('#')
  const file = path === '' ? document : normalize(join(dirname(document), decodeURI(path)))
  if (!existsSync(join(ROOT, file))) return `${target}: no such file ${file}`
  if (anchor === undefined) return undefined
  if (!file.endsWith('.md')) return `${target}: only Markdown files have headings`
  return anchorsOf(readDocument(file)).has(anchor)
    ? undefined
    : `${target}: no heading #${anchor} in ${file}`
}

describe('relative links lead to a file and a heading that exist:', () => {
  test.each(DOCUMENTS)('%s', (document) => {
    const links = relativeLinks(readDocument(document))
    expect(links.map((target) => faultOf(document, target)).filter(Boolean)).toEqual([])
  })

  test('and the check reports a link that leads nowhere', () => {
    expect(faultOf('README.md', 'docs/no-such-file.md')).toContain('no such file')
    expect(faultOf('README.md', 'docs/errors.md#no-such-heading')).toContain('no heading')
    expect(faultOf('README.md', '#no-such-heading')).toContain('no heading')
    expect(faultOf('docs/errors.md', '../src/errors.ts#L1')).toContain('only Markdown files')
    expect(relativeLinks('[a](b.md#c) `[d](e.md)` [f](https://g.example)')).toEqual(['b.md#c'])
    expect([...anchorsOf('# A `b`\n\n## [C](d.md): e\n\n## A b\n')]).toEqual([
      'a-b',
      'c-e',
      'a-b-1',
    ])
  })
})

test('the sidebar of the site lists every page of docs/ once', () => {
  const listed = sidebar().flatMap(({ items }) => items.map(({ link }) => link))
  const files = listed.map((link) => `docs${link === '/' ? '/index' : link}.md`)
  expect(files.sort()).toEqual(DOCUMENTS.filter((path) => path.startsWith('docs/')).sort())
})

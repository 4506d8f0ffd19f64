/** Relative links of a Markdown document, and what is wrong with them. */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { slugOf } from '../../docs/.vitepress/slug.ts'
import { ROOT } from '../harness/process.ts'
import { outlineOf } from './blocks.ts'

/** A document without fenced blocks and inline code. */
const proseOf = (markdown: string): string => outlineOf(markdown).prose.replace(/`[^`\n]*`/g, '')

/** Targets of links and images that are not addresses of other sites. */
export function relativeLinks(markdown: string): string[] {
  const targets = [...proseOf(markdown).matchAll(/\]\(\s*<?([^)>\s]+)/g)].map(([, to = '']) => to)
  return [...new Set(targets.filter((target) => !/^[a-z][a-z+.-]*:/i.test(target)))]
}

/** Text of a heading as it is shown: links without targets, code without backticks. */
const shown = (heading: string): string =>
  heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll('`', '')

/** Anchors of a document: of its headings, and those that it names itself. A repeated heading gets a number. */
export function anchorsOf(markdown: string): ReadonlySet<string> {
  const named = proseOf(markdown).matchAll(/<a id="([\w-]+)"><\/a>/g)
  const anchors = new Set([...named].map(([, id = '']) => id))
  for (const heading of outlineOf(markdown).headings) {
    const slug = slugOf(shown(heading))
    let anchor = slug
    for (let count = 1; anchors.has(anchor); count++) anchor = `${slug}-${count}`
    anchors.add(anchor)
  }
  return anchors
}

/** Returns what is wrong with a link of a document below `root`, or undefined. */
export function faultOf(document: string, target: string, root = ROOT): string | undefined {
  const [path = '', anchor] = target.split('#')
  const file = path === '' ? document : normalize(join(dirname(document), decodeURI(path)))
  if (!existsSync(join(root, file))) return `${target}: no such file ${file}`
  if (anchor === undefined) return undefined
  if (!file.endsWith('.md')) return `${target}: only Markdown files have headings`
  return anchorsOf(readFileSync(join(root, file), 'utf8')).has(anchor)
    ? undefined
    : `${target}: no heading #${anchor} in ${file}`
}

/** A path in code. Not: one with a placeholder, such as `src/middleware/<name>.ts` or `NNNN-title.md`. */
const NAMED_PATH = /`((?:[a-z]+\/)+[\w./@-]*)`/g

/** Returns the files and folders of the repository that a document names in code, and that do not exist. */
export function missingPaths(markdown: string, root = ROOT): string[] {
  return [...markdown.matchAll(NAMED_PATH)]
    .map(([, path = '']) => path)
    .filter((path) => existsSync(join(root, path.slice(0, path.indexOf('/')))))
    .filter((path) => !path.includes('NNNN') && !existsSync(join(root, path)))
}

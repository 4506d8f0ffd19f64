/** Generates the report as one self-contained HTML page. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { cards } from './cards.ts'
import { type Html, html, trusted } from './html.ts'
import { aims, beside, environment, failures } from './overview.ts'
import type { Results } from './results.ts'
import { comparisons, profile, soak } from './runs.ts'
import { scenarioSections } from './scenarios.ts'
import type { PageOptions, Section } from './section.ts'

/** Returns a complete document, the same for the same results. */
export function pageOf(results: Results, options: PageOptions): string {
  const sections = [
    failures(results, options),
    aims(results),
    environment(results, options),
    beside(results),
    ...scenarioSections(results, options),
    soak(results, options),
    profile(results),
    comparisons(results, options),
  ].filter((section) => section !== undefined)
  return `${document(results, sections).markup}\n`
}

const style = () => readFileSync(join(import.meta.dirname, 'style.css'), 'utf8')

/** The page loads nothing and runs no scripts. */
const POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"

function document(results: Results, sections: readonly Section[]): Html {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
<link rel="icon" href="data:,">
<title>Portcullis: what was measured</title>
<style>
${trusted(style())}</style>
</head>
<body>
<a class="skip" href="#main">To the results</a>
<header>
<h1>Portcullis: what was measured</h1>
<p>Every figure of this page is in the files of results that it was made of. Nothing here was
written by hand, and what was not measured is said to be missing.</p>
</header>
<div class="shell">
${cards(results)}
<nav aria-labelledby="contents">
<h2 id="contents">Contents</h2>
<ol>${sections.map(contentsLine)}</ol>
</nav>
<main id="main">
${sections.map(sectionOf)}
<footer>Made by <code>npm run bench:report</code>. Other people’s figures are theirs, from
other machines and in other languages.</footer>
</main>
</div>
</body>
</html>`
}

function contentsLine({ id, title, parts = [] }: Section): Html {
  const inner = parts.map((part) => html`<li><a href="#${part.id}">${part.title}</a></li>`)
  return html`<li><a href="#${id}">${title}</a>${
    inner.length === 0 ? undefined : html`<ol>${inner}</ol>`
  }</li>
`
}

function sectionOf({ id, title, body }: Section): Html {
  return html`<section id="${id}" aria-labelledby="${id}-title">
<h2 id="${id}-title">${title}</h2>
${body}
</section>`
}

/** Sections about separate runs: soak, profile, comparisons. */
import { readFileSync } from 'node:fs'
import { dayOf, numberText } from './format.ts'
import { type Html, html, tableOf } from './html.ts'
import type { Results, Saved } from './results.ts'
import type { Compared, Result } from './schema.ts'
import type { PageOptions, Section } from './section.ts'
import { slowedBy } from './standing.ts'
import { badge } from './summary.ts'

const MODULES = 20

/** Returns the soak's section: invariants, figures per minute, faults, and the plot over time. */
export function soak({ soak: saved }: Results, options: PageOptions): Section | undefined {
  if (saved === undefined) return undefined
  const { load, invariants, minutes, faults, audit, options: asked } = saved.result
  const ms = (value: number | null) => (value === null ? '-' : numberText(value))
  const body = html`<p>Two gateways over one Redis for ${numberText(asked.minutes)} minutes, with
${numberText(load.offeredPerSecond)} offered requests a second and a fault in each window:
${numberText(load.requests)} requests. ${numberText(audit.matched)} of ${numberText(audit.answered)} responses
have exactly one audit event. ${numberText(audit.diedWithGateway)} events were in memory of a killed gateway,
${numberText(audit.lost)} are lost.</p>
${pictureOf(saved, 'Latency, answers and memory over time, with the faults behind them', options)}
${tableOf(
  'Invariants',
  ['invariant', 'measured', 'aim', ''],
  invariants.map(({ what, value, aim, holds }) => [what, value, aim, badge(holds)]),
)}
${tableOf(
  'By minute; latency in ms',
  ['minute', 'answers', 'p50', 'p99', 'longest', 'p99 without faults'],
  minutes.map(({ answers, p50Ms, p99Ms, maxMs, quietP99Ms }, index) => [
    String(index + 1),
    numberText(answers),
    ...[p50Ms, p99Ms, maxMs, quietP99Ms].map(ms),
  ]),
)}
<details><summary>All faults</summary>${tableOf(
    'Faults, in seconds since the start of the load',
    ['fault', 'from', 'to', 'failures it explains', 'last one after its end'],
    faults.map(({ name, startSeconds, endSeconds, troubles, recoverySeconds }) => [
      name,
      ...[startSeconds, endSeconds, troubles].map(numberText),
      ms(recoverySeconds),
    ]),
  )}</details>`
  return { id: 'soak', title: `Soak of ${dayOf(saved.result.date)}`, body }
}

/** Returns the section about the CPU time of the full pipeline. */
export function profile({ profile: saved }: Results): Section | undefined {
  if (saved === undefined) return undefined
  const { stages, modules, requests, cpuMicros } = saved.result
  const share = (of: number) => `${numberText(Math.round(of * 1000) / 10)} %`
  const body = html`<p>${numberText(requests)} requests, ${numberText(cpuMicros)} us of CPU each.</p>
${
  stages &&
  tableOf(
    'Stages of the pipeline',
    ['stage', 'us of a request', 'share'],
    stages.map(({ stage, micros, share: of }) => [stage, numberText(micros), share(of)]),
  )
}
${tableOf(
  `The ${Math.min(MODULES, modules.length)} modules with the most CPU; us per request`,
  ['module', 'own', 'platform functions', 'share'],
  modules
    .slice(0, MODULES)
    .map(({ module, selfMicros, platformMicros, share: of }) => [
      module,
      numberText(selfMicros),
      numberText(platformMicros),
      share(of),
    ]),
)}`
  return { id: 'profile', title: 'CPU profile', body }
}

const TONES = { ok: true, regression: false, noisy: undefined } as const

/** Returns the section about compared revisions. */
export function comparisons({ comparisons: all }: Results, options: PageOptions) {
  if (all.length === 0) return undefined
  const rows = all.map(({ path, result }) => {
    const { base, head, cpu, throughput, pairs, verdict, options: asked } = result
    const tone = TONES[verdict] === undefined ? 'open' : TONES[verdict] ? 'good' : 'bad'
    return [
      html`<a href="${options.linkTo(path)}">${base.name} and ${head.name}</a>${slowedBy(asked.slowDownPercent)}`,
      intervalText(cpu),
      intervalText(throughput),
      String(pairs.length),
      html`<span class="badge ${tone}">${verdict}</span>`,
    ]
  })
  const section: Section = {
    id: 'comparisons',
    title: 'Compared revisions',
    body: tableOf(
      'Ratio of the later to the earlier revision: median of pairs and its interval',
      ['revisions', 'CPU of a request', 'requests a second', 'pairs', 'verdict'],
      rows,
    ),
  }
  return section
}

export function intervalText({ median, low, high, coverage }: Compared['cpu']): string {
  return `${median.toFixed(3)} (${low.toFixed(3)} to ${high.toFixed(3)}, ${numberText(
    Math.round(coverage * 100),
  )} %)`
}

/**
 * Returns the image beside a results file, embedded as an image so that it cannot affect the page.
 */
function pictureOf(
  { picture }: Saved<Result>,
  title: string,
  { linkTo }: PageOptions,
): Html | undefined {
  if (picture === undefined) return undefined
  const data = readFileSync(picture).toString('base64')
  return html`<figure><figcaption>${title} (<a href="${linkTo(picture)}">image file</a>)</figcaption>
<div class="wide" role="region" aria-label="Picture: ${title}" tabindex="0"><img
src="data:image/svg+xml;base64,${data}" alt="${title}"></div></figure>`
}

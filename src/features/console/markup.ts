/** Parts of pages. Every value is escaped by hono's `html`. */
import { html } from 'hono/html'
import { type Markup, pathTo } from './layout.ts'
import type { Query } from './page.ts'
import { PERIODS } from './period.ts'

export const NO_STORE_TEXT =
  'The gateway has no audit database, or your role lacks portcullis:audit:read: decisions cannot be shown.'

export const card = (title: string, content: Markup | string): Markup =>
  html`<section class="card"><h2>${title}</h2>${content}</section>`

export const numberOf = (value: number): string => value.toLocaleString('en-US')

export const percent = (part: number, all: number): string =>
  all === 0 ? '0 %' : `${((part / all) * 100).toFixed(part === 0 ? 0 : 1)} %`

export const periodLinks = (path: string, query: Query): Markup =>
  html`<ul class="links" aria-label="Period">${Object.keys(PERIODS).map(
    (last) =>
      html`<li>${
        query.last === last
          ? html`<a aria-current="true" href="${pathTo(path, { ...query, last, since: undefined, until: undefined })}">${last}</a>`
          : html`<a href="${pathTo(path, { ...query, last, since: undefined, until: undefined })}">${last}</a>`
      }</li>`,
  )}</ul>`

/** The switch of a stream, which the script of the page shows. */
export const streamBox = (path: string): Markup =>
  html`<p id="live" data-stream="${path}" hidden><button type="button">Follow new decisions</button> <span role="status"></span></p>`

export const facts = (rows: readonly (readonly [string, Markup | string])[]): Markup =>
  html`<dl class="facts">${rows.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`

interface Authored {
  readonly createdBy: string
  readonly createdByName?: string | undefined
}

/** Returns who created a record. The name comes from the identity provider, and identifies no one. */
export const authorOf = ({ createdBy, createdByName }: Authored): string =>
  createdByName === undefined ? createdBy : `${createdByName} (${createdBy})`

/** The pages of the audit chain: verify, export, erase. */
import { html } from 'hono/html'
import * as z from 'zod/mini'
import { type ChainPart, exportName, ndjsonOf } from '../../audit/chain-export.ts'
import { type ChainPage, chainPageSchema } from '../../audit/log.ts'
import { NO_STORE } from '../../http/response-headers.ts'
import { verifyPart } from './chain-verdict.ts'
import { actionForm, filterForm } from './forms.ts'
import { type ConsolePage, type Markup, pathTo, table, when } from './layout.ts'
import { card, facts, NO_STORE_TEXT, numberOf } from './markup.ts'
import type { Desk, PageDefinition, Query } from './page.ts'

const erasure = z.object({
  id: z.string(),
  state: z.string(),
  orderedAt: z.string(),
  rows: z.number(),
  tenant: z.nullable(z.string()),
})

const PATH = '/audit'
/** Pages of the chain that one page of the console reads: about 10,000 events. */
const PARTS = 5

export const AUDIT_CHAIN: readonly PageDefinition[] = [
  {
    path: PATH,
    id: 'auditChain',
    name: 'Audit chain',
    needs: 'readAuditChain',
    async show(desk): Promise<ConsolePage> {
      const id = desk.query.erasure
      const ordered =
        id === undefined
          ? undefined
          : z.parse(erasure, await desk.act('getErasure', { params: { id } }))
      return {
        title: 'Audit chain',
        at: 'Audit chain',
        content: html`${ordered === undefined ? '' : card('Erasure', erasureFacts(ordered))}${
          desk.may('readAuditChain') ? card('Chain', await chainCard(desk)) : ''
        }${desk.may('createErasure') ? card('Erase a person', erasureForms()) : ''}`,
      }
    },
  },
  {
    path: `${PATH}/export`,
    id: 'exportAuditChain',
    async show(desk) {
      const pages = await readPages(desk, (query) => desk.act('readAuditChain', { query }))
      const part = partOf(pages)
      const { first, last } = extentOf(part)
      const name = exportName(first, last).split('/').at(-1)
      return new Response(ndjsonOf(part), {
        headers: {
          ...NO_STORE,
          'Content-Type': 'application/x-ndjson',
          'Content-Disposition': `attachment; filename="${name}"`,
        },
      })
    },
  },
]

type ReadPage = (query: Readonly<Record<string, string>>) => Promise<unknown>

async function readPages({ query }: { readonly query: Query }, read: ReadPage) {
  const pages: ChainPage[] = []
  let after: string | undefined = query.after ?? '0'
  while (after !== undefined && pages.length < PARTS) {
    const page: ChainPage = z.parse(chainPageSchema, await read({ after }))
    pages.push(page)
    after = page.next === undefined ? undefined : String(page.next)
  }
  return pages
}

const partOf = (pages: readonly ChainPage[]): ChainPart => ({
  rows: pages.flatMap(({ rows }) => rows),
  blocks: pages.flatMap(({ blocks = [] }) =>
    blocks.map(({ first_seq, last_seq, previous_hash, hash, lines }) => ({
      first_seq,
      last_seq,
      previous_hash,
      hash,
      lines,
    })),
  ),
  checkpoints: pages.flatMap(({ checkpoints }) => checkpoints),
})

function extentOf({ rows, blocks }: ChainPart): { readonly first: number; readonly last: number } {
  const all = [
    ...rows.map(({ seq }) => Number(seq)),
    ...blocks.flatMap(({ first_seq, last_seq }) => [first_seq, last_seq]),
  ]
  return all.length === 0
    ? { first: 0, last: 0 }
    : { first: Math.min(...all), last: Math.max(...all) }
}

const WORDS = {
  yes: ['allow', 'Verified'],
  part: ['deny', 'Verified in part'],
  no: ['error', 'Not verified'],
} as const

async function chainCard(desk: Desk): Promise<Markup | string> {
  let isPermitted = true
  const pages = await readPages(desk, async (query) => {
    const page = await desk.readAudit('readAuditChain', chainPageSchema, { query })
    isPermitted &&= page !== undefined
    return page ?? { rows: [], checkpoints: [], head: null }
  })
  if (!isPermitted) return NO_STORE_TEXT
  const part = partOf(pages)
  const { first, last } = extentOf(part)
  const { head, next } = pages.at(-1) ?? { head: null }
  const { after, hash: before } = desk.query
  const { result, text, hash } = await verifyPart({
    ...part,
    after: Number(after ?? 0),
    hash: before,
    head: next === undefined ? head : undefined,
  })
  const [tone, words] = WORDS[result]
  return html`<p><strong class="${tone}">${words}</strong> ${text}</p>
${facts([
  ['Events', first === 0 ? 'none' : `${numberOf(first)} to ${numberOf(last)}`],
  ['End of the chain', head === null ? 'none' : `${numberOf(head.seq)}, ${head.hash}`],
  ['Blocks', numberOf(part.blocks.length)],
  ...(part.rows.length === 0
    ? []
    : [
        [
          'Rows of earlier versions',
          `${numberOf(part.rows.length)}, which only the command verifies`,
        ] as const,
      ]),
])}
${table(
  'Checkpoints',
  ['Event', 'Kind', 'Time (UTC)', 'Signed'],
  part.checkpoints
    .slice(-10)
    .map(({ seq, kind, time_ms, signature }) => [
      String(seq),
      String(kind),
      when(new Date(Number(time_ms)).toISOString()),
      signature === null ? 'no' : 'yes',
    ]),
  'These events have no checkpoint.',
)}
<p><a href="${pathTo(`${PATH}/export`, { after })}" download>Export these events</a>${
    next === undefined
      ? ''
      : html` <a href="${pathTo(PATH, { after: String(next), hash })}">Verify the next events</a>`
  }</p>
<p>The gateway has verified itself. <code>portcullis audit verify --jwks keys.json</code> does not rely on it, and checks the signatures as well.</p>`
}

const erasureFacts = ({ id, state, orderedAt, rows, tenant }: z.infer<typeof erasure>): Markup =>
  facts([
    ['Id', id],
    ['State', state],
    ['Ordered', when(orderedAt)],
    ['Erased events', numberOf(rows)],
    ['Tenant', tenant ?? 'all'],
  ])

const erasureForms = (): Markup =>
  html`${actionForm({
    action: 'createErasure',
    label: 'Erase a person from the trail',
    back: pathTo(PATH),
    fields: [
      { name: 'subject', label: 'Subject' },
      { name: 'issuer', label: 'Issuer, as in the events' },
      { name: 'tenant', label: 'Only in this tenant', isOptional: true },
    ],
  })}${filterForm({ path: PATH, label: 'State', fields: [{ name: 'erasure', label: 'Id of an erasure' }] })}`

/** Shows an erasure that was ordered. Its page has the id, and not the person. */
export function erasureOrdered(answer: unknown): Response {
  const { id } = z.parse(erasure, answer)
  return new Response(null, {
    status: 303,
    headers: { ...NO_STORE, Location: pathTo(PATH, { erasure: id }) },
  })
}

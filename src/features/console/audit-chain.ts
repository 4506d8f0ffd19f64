/** The pages of the audit chain: verify, export, erase. */
import { html } from 'hono/html'
import * as z from 'zod/mini'
import { type ChainPart, exportName, ndjsonOf } from '../../audit/chain-export.ts'
import { type ChainPage, chainPageSchema } from '../../audit/log.ts'
import { NO_STORE } from '../../http/response-headers.ts'
import { actionForm, type Choices } from './action-forms.ts'
import { verifyPart } from './chain-verdict.ts'
import { filterForm } from './forms.ts'
import { type ConsolePage, type Markup, pathTo, table, when } from './layout.ts'
import { card, facts, numberOf } from './markup.ts'
import { questionMistakes, withForm } from './mistakes.ts'
import type { Desk, PageDefinition, Query } from './page.ts'

const erasure = z.object({
  id: z.string(),
  state: z.string(),
  orderedAt: z.string(),
  rows: z.number(),
  tenant: z.nullable(z.string()),
})

const PATH = '/audit'
const NO_CHAIN_TEXT =
  'The gateway has no audit database, or you are an operator of a tenant: the chain has the events of every tenant.'
const STATE = {
  path: PATH,
  label: 'State',
  fields: [{ name: 'erasure', label: 'Id of an erasure' }],
}
/** Pages of the chain that one page of the console reads: about 10,000 events. */
const PARTS = 5

export const AUDIT_CHAIN: readonly PageDefinition[] = [
  {
    path: PATH,
    id: 'auditChain',
    name: 'Audit chain',
    needs: ['readAuditChain', 'createErasure'],
    async show(desk): Promise<ConsolePage> {
      const id = desk.query.erasure
      const ordered =
        id === undefined
          ? undefined
          : z.parse(
              erasure,
              await withForm(
                () => desk.act('getErasure', { params: { id } }),
                (errors) => ({
                  title: 'No erasure was found',
                  at: 'Audit chain',
                  content: card(
                    'State of an erasure',
                    questionMistakes({
                      ...{ ...STATE, errors, method: 'get' },
                      form: new URLSearchParams({ erasure: id }),
                    }),
                  ),
                }),
              ),
            )
      return {
        title: 'Audit chain',
        at: 'Audit chain',
        content: html`${ordered === undefined ? '' : card('Erasure', erasureFacts(ordered))}${
          desk.may('readAuditChain') ? card('Chain', await chainCard(desk)) : ''
        }${desk.may('createErasure') ? card('Erase a person', erasureForms({ issuers: desk.names.issuers })) : ''}`,
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
  if (!isPermitted) return NO_CHAIN_TEXT
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

const erasureForms = (choices: Choices): Markup =>
  html`${actionForm({ action: 'createErasure', back: pathTo(PATH), choices })}${filterForm(STATE)}`

/** Returns the path of an erasure that was ordered. It has the id, and not the person. */
export const erasurePath = (answer: unknown): string =>
  pathTo(PATH, { erasure: z.parse(erasure, answer).id })

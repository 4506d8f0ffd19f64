/** The pages of relations: tuples, check, expand, and who has a relation. */
import { html } from 'hono/html'
import * as z from 'zod/mini'
import { actionForm } from './action-forms.ts'
import { type FormField, filterForm, queryForm } from './forms.ts'
import { type ConsolePage, type Markup, pathTo, table } from './layout.ts'
import { card } from './markup.ts'
import { questionMistakes, withForm } from './mistakes.ts'
import type { Desk, PageDefinition, Query } from './page.ts'
import { findSubjects, type Tree, treeSchema } from './who.ts'

const tuplePage = z.object({
  tuples: z.array(z.object({ object: z.string(), relation: z.string(), subject: z.string() })),
  cursor: z.optional(z.string()),
})
const checked = z.object({
  allowed: z.boolean(),
  outcome: z.string(),
  why: z.optional(z.string()),
  trace: z.optional(z.unknown()),
})

const PATH = '/relations'
const FIELDS = ['object', 'relation', 'subject', 'tenant'] as const
type Field = (typeof FIELDS)[number]

interface Question {
  /** Below the path of the page. */
  readonly path: string
  readonly label: string
  readonly names: readonly Field[]
}

const CHECK: Question = {
  path: '/check',
  label: 'Check',
  names: ['subject', 'relation', 'object', 'tenant'],
}
const WHO: Question = {
  path: '/who',
  label: 'Who has it?',
  names: ['relation', 'object', 'tenant'],
}
const EXPAND: Question = { path: '/expand', label: 'Expand', names: WHO.names }

const LABELS: Readonly<Record<Field, string>> = {
  object: 'Object, such as document:1',
  relation: 'Relation',
  subject: 'Subject, such as user:alice',
  tenant: 'Tenant',
}

const fieldsOf = (names: readonly Field[], query: Query, areOptional = false): FormField[] =>
  names.map((name) => ({
    name,
    label: LABELS[name],
    value: query[name] ?? '',
    isOptional: areOptional || name === 'tenant',
  }))

export const RELATIONS: readonly PageDefinition[] = [
  {
    path: PATH,
    id: 'relations',
    name: 'Relations',
    needs: ['listRelations'],
    absent: 'The policy of this gateway has no relations that the gateway stores.',
    async show(desk) {
      const { query } = desk
      const { tuples, cursor } = z.parse(
        tuplePage,
        await desk.act('listRelations', { query: textsIn(query, [...FIELDS, 'cursor']) }),
      )
      const shown = table(
        'Relation tuples',
        ['Object', 'Relation', 'Subject', ''],
        tuples.map((tuple) => [
          tuple.object,
          tuple.relation,
          tuple.subject,
          actionForm({
            action: 'deleteRelation',
            back: pathTo(PATH),
            given: { ...tuple, tenant: query.tenant ?? '' },
          }),
        ]),
        'No tuple matches.',
      )
      const search = filterForm({
        path: PATH,
        label: 'Search',
        fields: fieldsOf(FIELDS, query, true),
      })
      const older =
        cursor === undefined
          ? ''
          : html`<p><a href="${pathTo(PATH, { ...query, cursor })}">More tuples</a></p>`
      return pageWith(desk, 'Relations', card('Tuples', html`${search}${shown}${older}`), query)
    },
  },
  {
    method: 'POST',
    path: `${PATH}/check`,
    id: 'checkRelation',
    async show(desk) {
      const { form, answered } = await ask(desk, CHECK)
      const trace = desk.may('expandRelation')
      const body = { ...textsIn(form, FIELDS), ...(trace && { trace }) }
      const answer = z.parse(checked, await answered(() => desk.act('checkRelation', { body })))
      const { object, relation, subject } = form
      return pageWith(
        desk,
        answer.allowed ? 'Yes' : 'No',
        card(
          `${subject ?? ''} ${relation ?? ''} ${object ?? ''}`,
          html`<p><strong>${answer.outcome}</strong> ${answer.why ?? ''}</p>${
            answer.trace === undefined
              ? ''
              : html`<details><summary>Steps</summary><pre>${JSON.stringify(answer.trace, null, 2)}</pre></details>`
          }`,
        ),
        form,
      )
    },
  },
  {
    method: 'POST',
    path: `${PATH}/expand`,
    id: 'expandRelation',
    async show(desk) {
      const { form, answered } = await ask(desk, EXPAND)
      const { object = '', relation = '' } = form
      const body = textsIn(form, ['object', 'relation', 'tenant'])
      const tree = z.parse(treeSchema, await answered(() => desk.act('expandRelation', { body })))
      return pageWith(desk, `${object}#${relation}`, card('One level', treeOf(tree)), form)
    },
  },
  {
    method: 'POST',
    path: `${PATH}/who`,
    id: 'whoMay',
    async show(desk) {
      const { form, answered } = await ask(desk, WHO)
      const { object = '', relation = '', tenant } = form
      const { subjects, isComplete } = await answered(() =>
        findSubjects(desk, { object, relation, tenant }),
      )
      return pageWith(
        desk,
        `Who has ${relation} of ${object}`,
        card(
          'Subjects',
          html`${table(
            'Subjects',
            ['Subject'],
            subjects.map((subject) => [subject]),
            'No subject.',
          )}${isComplete ? '' : html`<p class="note">There are more: the page follows at most 20 sets and 50 subjects.</p>`}`,
        ),
        form,
      )
    },
  },
]

/** Reads the form of a question. `answered` shows it again if the call finds mistakes. */
async function ask(desk: Desk, { path, label, names }: Question) {
  const form = await desk.form()
  const answered = <Answer>(run: () => Promise<Answer>) =>
    withForm(run, (errors) => ({
      title: `No answer: ${label}`,
      at: 'Relations',
      content: card(
        label,
        questionMistakes({ path: PATH + path, label, fields: fieldsOf(names, {}), form, errors }),
      ),
    }))
  return { form: Object.fromEntries(form) as Query, answered }
}

const textsIn = (values: Query, names: readonly string[]): Record<string, string> =>
  Object.fromEntries(
    names.flatMap((name) => {
      const value = values[name]
      return value === undefined || value === '' ? [] : [[name, value]]
    }),
  )

function pageWith(desk: Desk, title: string, first: Markup, query: Query): ConsolePage {
  const question = ({ label, path, names }: Question) =>
    card(label, queryForm({ path: PATH + path, label, fields: fieldsOf(names, query) }))
  return {
    title,
    at: 'Relations',
    content: html`${first}<div class="grid">${
      desk.may('checkRelation') ? question(CHECK) : ''
    }${desk.may('expandRelation') ? question(WHO) : ''}${
      desk.may('expandRelation') ? question(EXPAND) : ''
    }${
      desk.may('writeRelations')
        ? card('Write', actionForm({ action: 'writeRelation', back: pathTo(PATH) }))
        : ''
    }</div>`,
  }
}

/** Renders a tree of `expand` as nested lists. */
function treeOf({ tree: { root } }: { readonly tree: { readonly root: Tree } }): Markup {
  const named = (name: string, nodes: readonly Tree[]): Markup =>
    html`${name}<ul>${nodes.map((node) => html`<li>${nodeOf(node)}</li>`)}</ul>`
  function nodeOf({ leaf, union, intersection, difference }: Tree): Markup {
    if (union !== undefined) return named('any of', union.nodes)
    if (intersection !== undefined) return named('all of', intersection.nodes)
    if (difference !== undefined)
      return html`all of<ul><li>${nodeOf(difference.base)}</li></ul>except<ul><li>${nodeOf(difference.subtract)}</li></ul>`
    const sets =
      leaf?.computed === undefined ? (leaf?.tupleToUserset?.computed ?? []) : [leaf.computed]
    return html`<ul>${[...(leaf?.users?.users ?? []), ...sets.map(({ userset }) => userset)].map(
      (each) => html`<li>${each}</li>`,
    )}</ul>`
  }
  return html`<div class="tree">${nodeOf(root)}</div>`
}

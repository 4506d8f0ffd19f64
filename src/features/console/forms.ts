/** Forms of the console. */
import { html, raw } from 'hono/html'
import { type Markup, pathTo } from './layout.ts'

export interface FormField {
  readonly name: string
  readonly label: string
  readonly value?: string
  /** Default `text`. The value of a `secret` is not shown while it is typed, and is not kept by the browser. */
  readonly type?: 'text' | 'number' | 'secret' | 'lines'
  /** The values to choose from. */
  readonly options?: readonly string[]
  /** What is shown for an option. Default: its value. */
  readonly names?: Readonly<Record<string, string>>
  /** Default false. */
  readonly isOptional?: boolean
}

export type Hidden = Readonly<Record<string, string>>

interface ActionForm {
  /** The name of the action. */
  readonly action: string
  readonly label: string
  /** The page that follows. */
  readonly back: string
  readonly hidden?: Hidden
  readonly fields?: readonly FormField[]
}

interface QueryForm {
  /** The page that receives the form. */
  readonly path: string
  readonly label: string
  readonly fields: readonly FormField[]
}

let lastForm = 0

function fieldsOf(fields: readonly FormField[]): Markup {
  lastForm = (lastForm + 1) % 1_000_000
  return html`${fields.map((field) => fieldOf(field, `form-${lastForm}-${field.name}`))}`
}

function fieldOf(field: FormField, id: string): Markup {
  const { name, label, value = '', type = 'text', options, names, isOptional = false } = field
  const required = isOptional ? '' : raw(' required')
  const named = html`<label for="${id}">${label}</label>`
  if (options !== undefined)
    return html`<div>${named}<select id="${id}" name="${name}">${options.map((option) => optionOf(option, value, names?.[option]))}</select></div>`
  if (type === 'lines')
    return html`<div>${named}<textarea id="${id}" name="${name}" rows="3" maxlength="4096"${required}>${value}</textarea></div>`
  if (type === 'secret')
    return html`<div>${named}<input id="${id}" name="${name}" type="password" autocomplete="off" maxlength="256"${required}></div>`
  return html`<div>${named}<input id="${id}" name="${name}" type="${type}" value="${value}" maxlength="256"${required}></div>`
}

/** Renders an option of a select. The empty value is shown as `any`. */
const optionOf = (option: string, selected: string, name = option): Markup =>
  html`<option value="${option}"${option === selected ? raw(' selected') : ''}>${name || 'any'}</option>`

const REASON: FormField = { name: 'reason', label: 'Reason, for the audit trail' }

/** Renders a form that opens in place, so that no single click changes anything. */
export const actionForm = ({
  action,
  label,
  back,
  hidden = {},
  fields = [],
}: ActionForm): Markup => html`<details><summary>${label}</summary>
<form method="post" action="${pathTo('/actions')}">${hiddenFields({ action, back, ...hidden })}
${fieldsOf([...fields, REASON])}
<button class="danger">${label}</button></form></details>`

/** Renders the form that lifts a ban. */
export const banEnd = (id: string, back: string): Markup =>
  actionForm({ action: 'deleteBan', label: 'Lift this ban', back, hidden: { id } })

/** Renders the form that removes a revocation. */
export const revocationEnd = (id: string, back: string): Markup =>
  actionForm({ action: 'deleteRevocation', label: 'Remove this revocation', back, hidden: { id } })

/** Renders a form that changes nothing. Its values are in no URL and no log. */
export const queryForm = ({ path, label, fields }: QueryForm): Markup =>
  html`<form class="stack" method="post" action="${pathTo(path)}">${fieldsOf(fields)}<button>${label}</button></form>`

/** Renders a form whose values are in the URL of the page that follows. */
export const filterForm = ({ path, label, fields }: QueryForm, hidden: Hidden = {}): Markup =>
  html`<form class="filter" method="get" action="${pathTo(path)}">${hiddenFields(hidden)}${fieldsOf(fields)}<div><button>${label}</button></div></form>`

const hiddenFields = (hidden: Hidden): Markup =>
  html`${Object.entries(hidden).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}`

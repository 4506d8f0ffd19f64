/** Renders the forms of the console. */
import { html, raw } from 'hono/html'
import { type Markup, pathTo } from './layout.ts'

export interface FormField {
  readonly name: string
  readonly label: string
  /** Of `choices`: separated by spaces. */
  readonly value?: string
  /**
   * Default `text`. The value of a `secret` is not shown while it is typed, and is not kept by the browser. Of `choices`,
   * the visitor selects any number of the options.
   */
  readonly type?: 'text' | 'number' | 'secret' | 'lines' | 'choices'
  /** The values to choose from. */
  readonly options?: readonly string[] | undefined
  /** What is shown for an option. Default: its value. */
  readonly names?: Readonly<Record<string, string>> | undefined
  /** Values that the browser offers for a text. The visitor can enter others. */
  readonly suggestions?: readonly string[] | undefined
  /** Of a number. Default 1. */
  readonly min?: number
  /** Default false. */
  readonly isOptional?: boolean
  /** What is wrong with the value. Default: nothing. */
  readonly mistake?: string | undefined
}

export type Hidden = Readonly<Record<string, string>>

interface QueryForm {
  /** The page that receives the form. */
  readonly path: string
  readonly label: string
  readonly fields: readonly FormField[]
}

/** A field with the id of its element. */
export interface NamedField extends FormField {
  readonly id: string
}

let lastForm = 0

/** Gives each field an id that is unique in the page. */
export function named(fields: readonly FormField[]): readonly NamedField[] {
  lastForm = (lastForm + 1) % 1_000_000
  return fields.map((field) => ({ ...field, id: `form-${lastForm}-${field.name}` }))
}

export const fieldsOf = (fields: readonly NamedField[]): Markup => html`${fields.map(fieldOf)}`

function fieldOf(field: NamedField): Markup {
  const { id, label, mistake, type, options } = field
  const text =
    mistake === undefined ? '' : html`<p class="mistake" id="${id}-mistake">${mistake}</p>`
  if (type === 'choices' && options !== undefined)
    return html`<fieldset id="${id}" tabindex="-1"${stateOf(field)}><legend>${label}</legend>${choicesOf(field, options)}${text}</fieldset>`
  return html`<div><label for="${id}">${label}</label>${controlOf(field)}${text}</div>`
}

/** Refers to the mistake, so that a screen reader reads it with the field. */
const stateOf = ({ id, mistake }: NamedField): Markup | '' =>
  mistake === undefined ? '' : html` aria-invalid="true" aria-describedby="${id}-mistake"`

function controlOf(field: NamedField): Markup {
  const { id, name, value = '', type = 'text', options, names, suggestions = [] } = field
  const required = field.isOptional ? '' : raw(' required')
  const state = stateOf(field)
  if (options !== undefined)
    return html`<select id="${id}" name="${name}"${state}>${options.map((option) => optionOf(option, value, names?.[option]))}</select>`
  if (type === 'lines')
    return html`<textarea id="${id}" name="${name}" rows="3" maxlength="4096"${required}${state}>${value}</textarea>`
  if (type === 'secret')
    return html`<input id="${id}" name="${name}" type="password" autocomplete="off" maxlength="256"${required}${state}>`
  if (type === 'number')
    return html`<input id="${id}" name="${name}" type="number" min="${field.min ?? 1}" value="${value}"${required}${state}>`
  const list =
    suggestions.length === 0
      ? ''
      : html`<datalist id="${id}-list">${suggestions.map((each) => html`<option value="${each}"></option>`)}</datalist>`
  return html`<input id="${id}" name="${name}" type="text" value="${value}" maxlength="512"${list === '' ? '' : html` list="${id}-list"`}${required}${state}>${list}`
}

/** Renders an option of a select. The empty value is shown as `any`. */
const optionOf = (option: string, selected: string, name = option): Markup =>
  html`<option value="${option}"${option === selected ? raw(' selected') : ''}>${name || 'any'}</option>`

function choicesOf({ name, value = '' }: FormField, options: readonly string[]): Markup {
  const chosen = value.split(' ')
  return html`<div class="choices">${options.map(
    (option) =>
      html`<label><input type="checkbox" name="${name}" value="${option}"${chosen.includes(option) ? raw(' checked') : ''}> ${option}</label>`,
  )}</div>`
}

/** Lists the mistakes of a form, with links to its fields. `others` belong to no field. */
export const mistakesOf = (fields: readonly NamedField[], others: readonly string[]): Markup =>
  html`<div class="mistakes" role="alert"><p>Nothing was changed. Correct this, and send it again:</p><ul>${fields.flatMap(
    ({ id, label, mistake }) =>
      mistake === undefined ? [] : [html`<li><a href="#${id}">${label}</a>: ${mistake}</li>`],
  )}${others.map((each) => html`<li>${each}</li>`)}</ul></div>`

/** Renders a form that changes nothing. Its values are in no URL and no log. */
export const queryForm = ({ path, label, fields }: QueryForm): Markup =>
  html`<form class="stack" method="post" action="${pathTo(path)}">${fieldsOf(named(fields))}<button>${label}</button></form>`

/** Renders a form whose values are in the URL of the page that follows. */
export const filterForm = ({ path, label, fields }: QueryForm, hidden: Hidden = {}): Markup =>
  html`<form class="filter" method="get" action="${pathTo(path)}">${hiddenFields(hidden)}${fieldsOf(named(fields))}<div><button>${label}</button></div></form>`

export const hiddenFields = (hidden: Hidden): Markup =>
  html`${Object.entries(hidden).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}`

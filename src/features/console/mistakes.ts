/** The forms with mistakes: they are shown again with the values of the visitor, and what is wrong in plain words. */
import { html } from 'hono/html'
import { Denied } from '../../errors.ts'
import type { Denial, InputError } from '../../problems/reasons.ts'
import { ACTION_WORDS, actionFields, type Choices, openForm } from './action-forms.ts'
import {
  type FormField,
  fieldsOf,
  type Hidden,
  hiddenFields,
  mistakesOf,
  type NamedField,
  named,
} from './forms.ts'
import { type ConsolePage, type Markup, pathTo } from './layout.ts'
import { card, numberOf } from './markup.ts'
import type { Desk } from './page.ts'

/** A refusal with the page that shows it. The audit event has the refusal. */
export class DeniedWithPage extends Denied {
  readonly page: ConsolePage

  constructor(denial: Denial, page: ConsolePage) {
    super(denial)
    this.page = page
  }
}

/**
 * Runs a call with the input of a form. If it finds mistakes, `show` returns the page that has the form again. `absent`:
 * also if what the form names does not exist.
 */
export async function withForm<Answer>(
  run: () => Promise<Answer>,
  show: (errors: readonly InputError[]) => Promise<ConsolePage> | ConsolePage,
  absent?: InputError,
): Promise<Answer> {
  try {
    return await run()
  } catch (error) {
    if (!(error instanceof Denied)) throw error
    const { denial } = error
    if (denial.code === 'invalid_input') throw new DeniedWithPage(denial, await show(denial.errors))
    if (denial.code === 'not_found' && absent !== undefined)
      throw new DeniedWithPage(denial, await show([absent]))
    throw error
  }
}

/** The page of a record has its id: the visitor did not enter it. */
const isOfRecord = (action: string): boolean =>
  ACTION_WORDS[action]?.hidden?.includes('id') === true

/** Returns the mistake in the form of an action that names what does not exist. Undefined: the visitor names nothing. */
export function absentOf(action: string): InputError | undefined {
  if (isOfRecord(action)) return undefined
  const hasValue = actionFields(action, {}).some(({ name }) => name === 'value')
  return hasValue
    ? {
        ...{ in: 'body', path: '/value' },
        message: 'there is no such client or key, or it is not in your tenant',
      }
    : { in: 'body', path: '', message: 'there is no such record' }
}

/** Runs an action. If it is on a record that has gone, the page says so, and leads back. */
export async function unlessGone<Answer>(
  run: () => Promise<Answer>,
  action: string,
  back: string,
): Promise<Answer> {
  try {
    return await run()
  } catch (error) {
    if (!(error instanceof Denied) || error.denial.code !== 'not_found' || !isOfRecord(action))
      throw error
    throw new DeniedWithPage(error.denial, {
      title: `Not done: ${ACTION_WORDS[action]?.label ?? action}`,
      content: html`<p>The gateway has no such record: it has ended, or was removed meanwhile. Nothing was changed.</p>
<p><a href="${back}">Back</a></p>`,
    })
  }
}

/**
 * Returns the refusal of a page whose call refuses the visitor: the role lacks the permission, or no operator of a
 * tenant may make the call.
 */
export function unreadable(desk: Pick<Desk, 'may'>, call: string, permission: string): Denied {
  const denial: Denial = { code: 'permission_missing', permission }
  if (!desk.may(call)) return new Denied(denial)
  return new DeniedWithPage(denial, {
    title: 'Only for operators without a tenant',
    content: html`<p>This page shows all of the gateway. You are an operator of a tenant, so your role does not open it.</p>
<p><a href="${pathTo('')}">Overview</a></p>`,
  })
}

/** Returns the page with the form of an action, its values and its mistakes. */
export function actionMistakes(
  action: string,
  form: URLSearchParams,
  errors: readonly InputError[],
  choices: Choices,
): ConsolePage {
  const { label = action, hidden: own = [] } = ACTION_WORDS[action] ?? {}
  const { fields, others } = corrected(actionFields(action, choices), form, errors)
  const hidden = valuesOf(form, ['back', 'about', ...own])
  return {
    title: `Not done: ${label}`,
    content: card(
      label,
      html`${mistakesOf(fields, others)}${openForm(action, label, fields, hidden)}
<p><a href="${form.get('back') ?? pathTo('')}">Back, without a change</a></p>`,
    ),
  }
}

interface Question {
  /** The page that receives the form. */
  readonly path: string
  readonly label: string
  readonly fields: readonly FormField[]
  readonly form: URLSearchParams
  readonly errors: readonly InputError[]
  /** Default `post`. */
  readonly method?: 'get' | 'post'
  /** Values that the visitor does not enter. Default none. */
  readonly hidden?: Hidden
}

/** Returns a form that changes nothing, with its values and its mistakes. */
export function questionMistakes({
  path,
  label,
  errors,
  form,
  method = 'post',
  hidden = {},
  ...question
}: Question): Markup {
  const { fields, others } = corrected(question.fields, form, errors)
  return html`${mistakesOf(fields, others)}<form class="stack" method="${method}" action="${pathTo(path)}">${hiddenFields(hidden)}${fieldsOf(fields)}<button>${label}</button></form>`
}

const valuesOf = (form: URLSearchParams, names: readonly string[]): Hidden =>
  Object.fromEntries([...form].filter(([name]) => names.includes(name)))

/** Gives fields their values and mistakes. Secrets keep no value. */
function corrected(
  fields: readonly FormField[],
  form: URLSearchParams,
  errors: readonly InputError[],
): { readonly fields: readonly NamedField[]; readonly others: readonly string[] } {
  const found = errors.map((error) => ({ error, field: fieldOf(error, fields) }))
  return {
    fields: named(
      fields.map((field) => ({
        ...field,
        ...(field.type !== 'secret' &&
          form.has(field.name) && { value: form.getAll(field.name).join(' ') }),
        mistake: found
          .filter((each) => each.field === field)
          .map(({ error }) => wordsOf(error, field, form))
          .find(() => true),
      })),
    ),
    others: found.flatMap(({ error, field }) =>
      field === undefined ? [sentence(error.message)] : [],
    ),
  }
}

/** Names of fields, by the members of calls that have another name. */
const ALIASES: Readonly<Record<string, string>> = {
  expiresInSeconds: 'days',
  id: 'erasure',
}

/** Finds the field of a JSON Pointer: of several, such as `/caller/roles/0`, the first that names a field. */
function fieldOf({ path }: InputError, fields: readonly FormField[]): FormField | undefined {
  const parts = path.split('/').slice(1)
  const names = [...parts, ...parts.flatMap((part) => ALIASES[part] ?? [])]
  const name = names.find((each) => fields.some((field) => field.name === each))
  return fields.find((field) => field.name === name)
}

const DAY_SECONDS = 86_400

function wordsOf(error: InputError, field: FormField, form: URLSearchParams): string {
  const { rule, message, path } = error
  const value = form.getAll(field.name).join(' ').trim()
  if (value === '' && !field.isOptional)
    return field.options === undefined ? 'Enter a value.' : 'Select a value.'
  const unit = field.name === 'days' ? DAY_SECONDS : 1
  const isText = rule?.origin === 'string'
  if (rule?.origin === 'array') {
    if (rule.code === 'too_small') return `Enter at least ${numberOf(Number(rule.minimum))} names.`
    if (rule.code === 'too_big') return `Enter at most ${numberOf(Number(rule.maximum))} names.`
  }
  switch (rule?.code) {
    case 'too_small':
      return isText
        ? 'Enter a value.'
        : `Enter a number of at least ${numberOf(Math.ceil(Number(rule.minimum) / unit))}.`
    case 'too_big':
      return isText
        ? `Enter at most ${numberOf(Number(rule.maximum))} characters.`
        : `Enter a number of at most ${numberOf(Math.floor(Number(rule.maximum) / unit))}.`
    case 'invalid_type':
      return field.type === 'number' ? 'Enter a whole number.' : 'Enter a value.'
    case 'invalid_value':
      return `Enter one of ${[rule.values].flat().join(', ')}.`
    default: {
      // One of several names.
      const index = /\/(\d+)$/.exec(path)?.[1]
      const name = index === undefined ? undefined : value.split(/\s+/)[Number(index)]
      return name === undefined || field.type === 'number'
        ? sentence(message)
        : `${name} ${ended(message)}`
    }
  }
}

const ended = (text: string): string => (/[.?]$/.test(text) ? text : `${text}.`)

const sentence = (text: string): string => ended(text.charAt(0).toUpperCase() + text.slice(1))

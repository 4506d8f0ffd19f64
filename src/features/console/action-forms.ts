/** The forms of the actions: their words and fields, wherever a page offers them. */
import { html } from 'hono/html'
import { BAN_KINDS } from '../../access/abuse/ban-record.ts'
import { REVOCATION_KINDS } from '../../access/revocation/record.ts'
import {
  type FormField,
  fieldsOf,
  type Hidden,
  hiddenFields,
  type NamedField,
  named,
} from './forms.ts'
import { type Markup, pathTo } from './layout.ts'
import { numberOf } from './markup.ts'

/** A limit of the policy. */
export interface LimitChoice {
  readonly name: string
  /** Null: the plan of the caller has it. */
  readonly limit: number | null
  readonly windowSeconds: number
  readonly by?: string
}

/** The known values of fields. Default of each: the visitor enters any text. */
export interface Choices {
  readonly limits?: readonly LimitChoice[] | undefined
  readonly plans?: readonly string[] | undefined
  readonly roles?: readonly string[] | undefined
  readonly scopes?: readonly string[] | undefined
  readonly issuers?: readonly string[] | undefined
}

interface ActionWords {
  readonly label: string
  /** Whether it takes something away from a caller, or deletes something. Default false. */
  readonly takesAway?: boolean
  /** Fields that the visitor does not enter on any page, such as an id. */
  readonly hidden?: readonly string[]
  /** Default none. */
  fields?(choices: Choices): readonly FormField[]
}

interface ActionForm {
  readonly action: string
  /** Default: as the action. */
  readonly label?: string
  /** The page that follows. */
  readonly back: string
  /** Values that the page has already. Their fields are hidden. */
  readonly given?: Hidden
  /** What the action is about, for the notice that follows. Default: its fields say it. */
  readonly about?: string
  readonly choices?: Choices
  /** First values of fields. Default: those of the fields. */
  readonly values?: Hidden
  /** What the visitor should read first. Default: nothing. */
  readonly note?: Markup | ''
}

const TENANT: FormField = { name: 'tenant', label: 'Only in this tenant', isOptional: true }
const SUBJECT: FormField = { name: 'subject', label: 'Subject' }
const REASON: FormField = { name: 'reason', label: 'Reason, for the audit trail' }
const DAYS: FormField = {
  ...{ name: 'days', label: 'Days until it expires; empty: never' },
  ...{ type: 'number', isOptional: true },
}
const BY_ID = ['id']

/** Returns a field's choice of limits of the policy, with their numbers and windows. */
const limitField = ({ limits }: Choices): FormField => ({
  name: 'limit',
  label: limits === undefined ? 'Limit of the policy' : 'Limit',
  ...(limits && {
    options: limits.map(({ name }) => name),
    names: Object.fromEntries(limits.map((limit) => [limit.name, limitWords(limit)])),
  }),
})

const limitWords = ({ name, limit, windowSeconds, by }: LimitChoice): string =>
  `${name}: ${limit === null ? 'the number of its plan' : numberOf(limit)} in ${windowSeconds} s${by === undefined ? '' : `, by ${by}`}`

const windowFields = (choices: Choices): readonly FormField[] => [
  limitField(choices),
  { name: 'value', label: 'Subject, client, tenant, address, or id of the key' },
  TENANT,
]

/** Returns a field for names. It has a box for each known one, and else they are separated by spaces. */
export const namesField = (
  name: string,
  label: string,
  known: readonly string[] | undefined,
): FormField =>
  known === undefined || known.length === 0
    ? { name, label: `${label}, separated by spaces`, isOptional: true }
    : { name, label, type: 'choices', options: known, isOptional: true }

const planField = ({ plans = [] }: Choices): readonly FormField[] =>
  plans.length === 0
    ? []
    : [
        {
          name: 'plan',
          label: 'Plan; any: that of its subject, client or tenant',
          options: ['', ...plans],
        },
      ]

const TUPLE: readonly FormField[] = [
  { name: 'object', label: 'Object, such as document:1' },
  { name: 'relation', label: 'Relation' },
  { name: 'subject', label: 'Subject, such as user:alice' },
  { name: 'tenant', label: 'Tenant', isOptional: true },
]

/** Returns the names that a form has: of several boxes, or separated by spaces. */
export const wordsIn = (form: URLSearchParams, name: string): readonly string[] =>
  form
    .getAll(name)
    .flatMap((text) => text.split(/\s+/))
    .filter((word) => word !== '')

export const ACTION_WORDS: Readonly<Record<string, ActionWords>> = {
  createRevocation: {
    label: 'Revoke a caller everywhere',
    takesAway: true,
    fields: () => [
      { name: 'kind', label: 'Kind', options: REVOCATION_KINDS, value: 'subject' },
      { name: 'value', label: 'Subject, client, tenant, session, or id of the token' },
      TENANT,
    ],
  },
  deleteRevocation: { label: 'Remove this revocation', hidden: BY_ID },
  createBan: {
    label: 'Ban a caller',
    takesAway: true,
    fields: () => [
      { name: 'kind', label: 'Kind', options: BAN_KINDS },
      { name: 'value', label: 'Address or subject' },
      { name: 'seconds', label: 'Seconds', value: '3600', type: 'number' },
    ],
  },
  deleteBan: { label: 'Lift this ban', hidden: BY_ID },
  createLimitOverride: {
    label: 'Set a limit of a caller',
    fields: (choices) => [
      ...windowFields(choices),
      { name: 'requests', label: 'Requests in each window', type: 'number' },
      {
        ...{ name: 'expiresInSeconds', type: 'number', isOptional: true },
        label: 'Seconds until it ends; empty: until it is removed',
      },
    ],
  },
  deleteLimitOverride: { label: 'Remove this limit', takesAway: true, hidden: BY_ID },
  resetLimit: { label: 'Reset a count', fields: windowFields },
  createApiKey: {
    label: 'Create an API key',
    fields: (choices) => [
      { name: 'name', label: 'Name' },
      SUBJECT,
      namesField('roles', 'Roles', choices.roles),
      {
        ...{ name: 'scopes', label: 'Scopes, separated by spaces', isOptional: true },
        suggestions: choices.scopes,
      },
      { name: 'tenant', label: 'Tenant', isOptional: true },
      DAYS,
      ...planField(choices),
    ],
  },
  rotateApiKey: {
    label: 'Rotate the secret',
    hidden: BY_ID,
    fields: () => [
      {
        name: 'graceSeconds',
        label: 'Seconds for which the old secret stays valid: 0, or from 300 to 86400',
        ...{ type: 'number', value: '0', min: 0 },
      },
    ],
  },
  expireApiKey: {
    label: 'Change the expiry',
    takesAway: true,
    hidden: BY_ID,
    fields: () => [DAYS],
  },
  planApiKey: { label: 'Change the plan', hidden: BY_ID, fields: planField },
  disableApiKey: { label: 'Disable this API key', takesAway: true, hidden: BY_ID },
  assignPlan: {
    label: 'Give a plan',
    fields: ({ plans }) => [
      { name: 'by', label: 'Kind', options: ['tenant', 'client', 'subject', 'key'] },
      { name: 'value', label: 'Tenant, client, subject, or id of the key' },
      { name: 'plan', label: 'Plan', options: plans },
    ],
  },
  removePlanAssignment: { label: 'Remove this plan', takesAway: true, hidden: BY_ID },
  writeRelation: { label: 'Write a tuple', fields: () => TUPLE },
  deleteRelation: { label: 'Delete', takesAway: true, fields: () => TUPLE },
  approveMcpTool: { label: 'Approve this definition', hidden: ['server', 'tool', 'hash'] },
  withdrawMcpApproval: {
    label: 'Withdraw this approval',
    takesAway: true,
    hidden: ['server', 'tool'],
  },
  createErasure: {
    label: 'Erase a person from the trail',
    takesAway: true,
    fields: ({ issuers }) => [
      SUBJECT,
      { name: 'issuer', label: 'Issuer, as in the events', suggestions: issuers },
      TENANT,
    ],
  },
}

/** Returns the fields of an action, and that of the reason. */
export function actionFields(action: string, choices: Choices): readonly FormField[] {
  const fields = ACTION_WORDS[action]?.fields?.(choices) ?? []
  return [...fields, REASON]
}

/** Renders the form of an action, open. */
export const openForm = (
  action: string,
  label: string,
  fields: readonly NamedField[],
  hidden: Hidden,
): Markup =>
  html`<form class="stack" method="post" action="${pathTo('/actions')}">${hiddenFields({ action, ...hidden })}
${fieldsOf(fields)}
<button${ACTION_WORDS[action]?.takesAway ? html` class="danger"` : ''}>${label}</button></form>`

/** Renders a form that opens in place, so that no single click changes anything. */
export function actionForm({
  action,
  label = ACTION_WORDS[action]?.label ?? action,
  back,
  given = {},
  about,
  choices = {},
  values = {},
  note = '',
}: ActionForm): Markup {
  const fields = actionFields(action, choices)
    .filter(({ name }) => !Object.hasOwn(given, name))
    .map((field) => ({
      ...field,
      ...(values[field.name] !== undefined && { value: values[field.name] }),
    }))
  const hidden = { back, ...given, ...(about !== undefined && { about }) }
  return html`<details><summary>${label}</summary>
${note}${openForm(action, label, named(fields), hidden)}</details>`
}

interface Owned {
  readonly id: string
  readonly value: string
}

export const banEnd = ({ id, value }: Owned, back: string): Markup =>
  actionForm({ action: 'deleteBan', back, given: { id }, about: value })

export const revocationEnd = (
  { id, value, kind }: Owned & { readonly kind: string },
  back: string,
): Markup =>
  actionForm({ action: 'deleteRevocation', back, given: { id }, about: `${kind} ${value}` })

export const overrideEnd = (
  { id, value, limit }: Owned & { readonly limit: string },
  back: string,
): Markup =>
  actionForm({ action: 'deleteLimitOverride', back, given: { id }, about: `${limit} of ${value}` })

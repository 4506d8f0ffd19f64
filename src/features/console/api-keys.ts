/** The pages of API keys and plans. */
import { html } from 'hono/html'
import * as z from 'zod/mini'
import { usageDaySchema } from '../../audit/usage.ts'
import { Denied } from '../../errors.ts'
import { actionForm } from './action-forms.ts'
import { decisionChart } from './chart.ts'
import { type FormField, filterForm, queryForm } from './forms.ts'
import { keyLimitsView } from './key-limits.ts'
import { type ConsolePage, type Markup, pathTo, table, when } from './layout.ts'
import { authorOf, card, facts, NO_STORE_TEXT, numberOf } from './markup.ts'
import { questionMistakes, withForm } from './mistakes.ts'
import type { Desk, PageDefinition } from './page.ts'

const apiKey = z.object({
  id: z.string(),
  name: z.string(),
  subject: z.string(),
  roles: z.array(z.string()),
  scopes: z.array(z.string()),
  tenant: z.nullable(z.string()),
  prefix: z.nullable(z.string()),
  plan: z.nullable(z.string()),
  status: z.string(),
  createdAt: z.string(),
  createdBy: z.string(),
  createdByName: z.optional(z.string()),
  rotatedAt: z.string(),
  expiresAt: z.nullable(z.string()),
  lastUsedAt: z.nullable(z.string()),
  revokedBy: z.nullable(z.string()),
  metadata: z.record(z.string(), z.string()),
  current: z.optional(z.boolean()),
})
type ApiKey = z.infer<typeof apiKey>
const keyPage = z.object({ apiKeys: z.array(apiKey), cursor: z.optional(z.string()) })
const planPage = z.object({
  plans: z.array(
    z.object({ name: z.string(), default: z.boolean(), limits: z.record(z.string(), z.number()) }),
  ),
  assignments: z.array(
    z.object({
      id: z.string(),
      by: z.string(),
      value: z.string(),
      plan: z.string(),
      createdAt: z.string(),
      createdBy: z.string(),
      createdByName: z.optional(z.string()),
      expiresAt: z.nullable(z.string()),
    }),
  ),
})
const usage = z.object({ since: z.string(), until: z.string(), days: z.array(usageDaySchema) })
const secret = z.object({ id: z.string(), apiKey: z.string() })

const DAY_MS = 86_400_000
/** The periods of usage, in days. */
const USAGE_DAYS: Readonly<Record<string, number>> = { '7d': 7, '30d': 30, '90d': 90 }
const STATUSES = ['', 'active', 'expired', 'revoked']
const PATH = '/api-keys'

const LOOK_UP = 'Which key is this?'
const LOOKUP_FIELD: FormField = {
  name: 'apiKey',
  label: 'The complete key; it is not stored',
  type: 'secret',
}
const LOOKUP = { path: `${PATH}/lookup`, label: 'Look up', fields: [LOOKUP_FIELD] }

export const API_KEYS: readonly PageDefinition[] = [
  {
    path: PATH,
    id: 'apiKeys',
    name: 'API keys',
    needs: ['listApiKeys', 'lookUpApiKey', 'createApiKey', 'listPlans'],
    show: showList,
  },
  { path: `${PATH}/:id`, id: 'apiKey', show: showKey },
  {
    method: 'POST',
    path: `${PATH}/lookup`,
    id: 'lookUpApiKey',
    async show(desk) {
      const form = await desk.form()
      const body = { apiKey: form.get('apiKey')?.trim() ?? '' }
      const found = await withForm(
        () => desk.act('lookUpApiKey', { body }),
        (errors) => ({
          title: 'No key was looked up',
          at: 'API keys',
          content: card(LOOK_UP, questionMistakes({ ...LOOKUP, form, errors })),
        }),
      )
      const { id, current } = z.parse(apiKey, found)
      const note =
        current === false
          ? 'This is an old secret of the key, which is valid until the end of its grace period.'
          : 'This is the present secret of the key.'
      return keyView(desk, id, note)
    },
  },
]

async function showList(desk: Desk): Promise<ConsolePage> {
  const { subject, tenant, reference, status, cursor } = desk.query
  const filters = { subject, tenant, reference, status, cursor }
  const query = Object.fromEntries(
    Object.entries(filters).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value]],
    ),
  )
  const listed = await desk.read('listApiKeys', keyPage, { query })
  const plans = await desk.read('listPlans', planPage)
  const planNames = plans?.plans.map(({ name }) => name) ?? []
  const back = pathTo(PATH)
  return {
    title: 'API keys',
    at: 'API keys',
    content: html`<div class="grid">${
      desk.may('lookUpApiKey') ? card(LOOK_UP, queryForm(LOOKUP)) : ''
    }${desk.may('createApiKey') ? card('New key', newKeyForm(desk, planNames)) : ''}</div>
${
  listed === undefined
    ? html`<p class="note">Your role lacks portcullis:api-keys:list.</p>`
    : card(
        'Keys',
        html`${searchForm(desk)}${keyTable(listed.apiKeys)}${
          listed.cursor === undefined
            ? ''
            : html`<p><a href="${pathTo(PATH, { ...desk.query, cursor: listed.cursor })}">Older keys</a></p>`
        }`,
      )
}${plans === undefined ? '' : planCards(plans, back)}`,
  }
}

const searchForm = ({ query }: Desk): Markup =>
  filterForm({
    path: PATH,
    label: 'Search',
    fields: [
      { name: 'subject', label: 'Subject', value: query.subject ?? '', isOptional: true },
      { name: 'tenant', label: 'Tenant', value: query.tenant ?? '', isOptional: true },
      { name: 'reference', label: 'Reference', value: query.reference ?? '', isOptional: true },
      { name: 'status', label: 'Status', value: query.status ?? '', options: STATUSES },
    ],
  })

const keyTable = (keys: readonly ApiKey[]): Markup =>
  table(
    'API keys',
    [
      'Name',
      'Begins with',
      'Subject',
      'Tenant',
      'Plan',
      'Status',
      'Expires (UTC)',
      'Last use (UTC)',
    ],
    keys.map(({ id, name, prefix, subject, tenant, plan, status, expiresAt, lastUsedAt }) => [
      html`<a href="${pathTo(`${PATH}/${id}`)}">${name}</a>`,
      prefix ?? '',
      html`<a href="${pathTo('/callers', { kind: 'subject', value: subject })}">${subject}</a>`,
      tenant ?? '',
      plan ?? '',
      status,
      expiresAt === null ? 'never' : when(expiresAt),
      lastUsedAt === null ? 'never' : when(lastUsedAt),
    ]),
    'No key matches.',
  )

const planCards = ({ plans, assignments }: z.infer<typeof planPage>, back: string): Markup =>
  html`<div class="grid">${card(
    'Plans',
    table(
      'Plans',
      ['Plan', 'Units of each limit'],
      plans.map(({ name, default: isDefault, limits }) => [
        isDefault ? `${name} (default)` : name,
        Object.entries(limits)
          .map(([limit, units]) => `${limit}: ${numberOf(units)}`)
          .join(', '),
      ]),
    ),
  )}${card(
    'Plans of keys, subjects, clients and tenants',
    html`${table(
      'Assignments',
      ['Since (UTC)', 'Kind', 'Value', 'Plan', 'By', ''],
      assignments.map(({ id, by, value, plan, createdAt, ...author }) => [
        when(createdAt),
        by,
        value,
        plan,
        authorOf(author),
        actionForm({
          action: 'removePlanAssignment',
          back,
          given: { id },
          about: `${by} ${value}`,
        }),
      ]),
    )}${actionForm({
      action: 'assignPlan',
      back,
      choices: { plans: plans.map(({ name }) => name) },
      note: html`<p class="note">It replaces the plan that the party has.</p>`,
    })}`,
  )}</div>`

async function showKey(desk: Desk): Promise<ConsolePage> {
  const id = desk.param('id')
  // Not in the page of the refusal: it may be the secret, in place of the id.
  if (!z.safeParse(z.uuid(), id).success) throw new Denied({ code: 'not_found' })
  return keyView(desk, id)
}

async function keyView(desk: Desk, id: string, note?: string): Promise<ConsolePage> {
  const params = { id }
  const key = z.parse(apiKey, await desk.act('getApiKey', { params }))
  const last =
    desk.query.last !== undefined && Object.hasOwn(USAGE_DAYS, desk.query.last)
      ? desk.query.last
      : '30d'
  const since = new Date(desk.nowMs - (USAGE_DAYS[last] ?? 30) * DAY_MS).toISOString()
  const used = await desk.readAudit('readApiKeyUsage', usage, { params, query: { since } })
  const left = await desk.read('readApiKeyLimits', keyLimitsView, { params })
  const plans = await desk.read('listPlans', planPage)
  return {
    title: `API key ${key.name}`,
    at: 'API keys',
    content: html`${note === undefined ? '' : html`<p class="note">${note}</p>`}<div class="grid">${card(
      'Key',
      keyFacts(key),
    )}${card(
      'Remaining now',
      left === undefined
        ? 'Your role lacks portcullis:api-keys:usage.'
        : table(
            'Remaining',
            ['Limit', 'Remaining', 'More units (UTC)'],
            left.limits.map(({ name, limit, remaining, resetsAt }) => [
              name,
              `${numberOf(remaining)} of ${numberOf(limit)}`,
              when(resetsAt),
            ]),
            'No limit counts this key.',
          ),
    )}${card('Actions', keyActions(desk, key, plans?.plans.map(({ name }) => name) ?? []))}</div>
${card('Usage', used === undefined ? NO_STORE_TEXT : usageChart(id, last, used))}`,
  }
}

const keyFacts = (key: ApiKey): Markup =>
  facts([
    ['Status', key.revokedBy === null ? key.status : `${key.status} by ${key.revokedBy}`],
    ['Id', key.id],
    ['Begins with', key.prefix ?? 'unknown until it is rotated'],
    [
      'Subject',
      html`<a href="${pathTo('/callers', { kind: 'subject', value: key.subject })}">${key.subject}</a>`,
    ],
    ['Tenant', key.tenant ?? 'none'],
    ['Plan', key.plan ?? 'that of its subject, client or tenant'],
    ['Roles', key.roles.join(', ') || 'none'],
    ['Scopes', key.scopes.join(' ') || 'none'],
    ['Created', html`${when(key.createdAt)} by ${authorOf(key)}`],
    ['Rotated', when(key.rotatedAt)],
    ['Expires', key.expiresAt === null ? 'never' : when(key.expiresAt)],
    ['Last use', key.lastUsedAt === null ? 'never' : when(key.lastUsedAt)],
    ...Object.entries(key.metadata),
    [
      'Decisions',
      html`<a href="${pathTo('/callers', { kind: 'key', value: key.id })}">as a caller</a>`,
    ],
  ])

const newKeyForm = (desk: Desk, plans: readonly string[]): Markup =>
  actionForm({
    action: 'createApiKey',
    back: pathTo(PATH),
    choices: { ...desk.names, plans: desk.may('assignPlan') ? plans : [] },
  })

function keyActions(
  desk: Desk,
  { id, name, status, plan }: ApiKey,
  plans: readonly string[],
): Markup | string {
  if (status === 'revoked') return 'The key is revoked. It cannot be restored.'
  const form = { back: pathTo(`${PATH}/${id}`), given: { id }, about: name }
  return html`${desk.may('rotateApiKey') ? actionForm({ action: 'rotateApiKey', ...form }) : ''}${
    desk.may('updateApiKey') ? actionForm({ action: 'expireApiKey', ...form }) : ''
  }${
    desk.may('updateApiKey') && desk.may('assignPlan') && plans.length > 0
      ? actionForm({
          action: 'planApiKey',
          ...form,
          choices: { plans },
          values: { plan: plan ?? '' },
        })
      : ''
  }${desk.may('disableApiKey') ? actionForm({ action: 'disableApiKey', ...form }) : ''}`
}

function usageChart(
  id: string,
  last: string,
  { since, until, days }: z.infer<typeof usage>,
): Markup {
  const byDay = new Map(days.map((day) => [day.day, day]))
  const firstMs = Math.floor(Date.parse(since) / DAY_MS) * DAY_MS
  const count = Math.ceil((Date.parse(until) - firstMs) / DAY_MS)
  const buckets = Array.from({ length: count }, (_, at) => {
    const time = new Date(firstMs + at * DAY_MS).toISOString()
    const { allowed = 0, refused = 0, errors = 0 } = byDay.get(time.slice(0, 10)) ?? {}
    return { time, allow: allowed, deny: refused, error: errors }
  })
  const total = days.reduce((sum, { requests }) => sum + requests, 0)
  return html`<ul class="links" aria-label="Period">${Object.keys(USAGE_DAYS).map(
    (each) =>
      html`<li><a href="${pathTo(`${PATH}/${id}`, { last: each })}"${each === last ? html` aria-current="true"` : ''}>${each}</a></li>`,
  )}</ul><p>${numberOf(total)} requests in the last ${last}, counted from the events in the audit database. Days are of UTC.</p>
${decisionChart({ buckets, bucketSeconds: DAY_MS / 1_000, since, until }, (from, to) =>
  pathTo('/decisions', { key: id, since: from, until: to }),
)}`
}

/** Shows a new secret, which no other page does. */
export function secretPage(answer: unknown, back: string): ConsolePage {
  const { id, apiKey: text } = z.parse(secret, answer)
  return {
    title: 'The new secret',
    at: 'API keys',
    copies: true,
    content: card(
      'Copy it now',
      html`<p>It is shown only once. The gateway stores only its hash.</p>
<p><label for="secret">API key</label><input id="secret" class="secret" value="${text}" readonly autocomplete="off" spellcheck="false"></p>
<p><a href="${pathTo(`${PATH}/${id}`)}">The key</a> <a href="${back}">Back</a></p>`,
    ),
  }
}

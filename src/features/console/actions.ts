/** The actions of the console: the operators' calls that its forms run, by the names in the forms. */

import type { CallInput } from '../../routes/admin/call.ts'
import { inputRefused } from '../../routes/admin/input.ts'
import { wordsIn } from './action-forms.ts'
import { secretPage } from './api-keys.ts'
import { erasurePath } from './audit-chain.ts'
import { choicesOf } from './choices.ts'
import { BACK, CONSOLE_PATH, type ConsolePage } from './layout.ts'
import { absentOf, actionMistakes, unlessGone, withForm } from './mistakes.ts'
import { noticeOf } from './notice-words.ts'
import type { PageDefinition } from './page.ts'

interface Action {
  /** The id of the operators' call. Default: the name of the action. */
  readonly call?: string
  input(form: URLSearchParams, reason: string): CallInput
  /** Shows the answer, which no other page can show. Default: the page of the form follows. */
  shows?(answer: unknown, back: string): ConsolePage
  /** The path of the page that follows. Default: that of the form. */
  leadsTo?(answer: unknown): string
}

const DAY_SECONDS = 86_400

/** An absent or malformed number is refused by the call. */
const numberIn = (form: URLSearchParams, name: string): number =>
  Number(form.get(name) || Number.NaN)

/** Returns the values that are present. */
const textsIn = (form: URLSearchParams, ...names: readonly string[]): Record<string, string> =>
  Object.fromEntries([...form].filter(([name, value]) => value !== '' && names.includes(name)))

/** Returns the seconds of a number of days. Undefined: the field is empty. */
const daysIn = (form: URLSearchParams): number | undefined =>
  form.get('days') ? numberIn(form, 'days') * DAY_SECONDS : undefined

const idOf = (form: URLSearchParams) => ({ id: form.get('id') ?? '' })
const byId: Action = { input: (form) => ({ params: idOf(form) }) }

const tupleChange = (form: URLSearchParams, list: 'writes' | 'deletes'): CallInput => ({
  body: {
    ...textsIn(form, 'tenant'),
    [list]: [textsIn(form, 'object', 'relation', 'subject')],
  },
})

export const ACTIONS: Readonly<Record<string, Action>> = {
  createRevocation: {
    input: (form, reason) => ({
      body: { ...textsIn(form, 'kind', 'value', 'issuer', 'tenant'), reason },
    }),
  },
  deleteRevocation: byId,
  createBan: {
    input: (form, reason) => ({
      body: { ...textsIn(form, 'kind', 'value'), seconds: numberIn(form, 'seconds'), reason },
    }),
  },
  deleteBan: byId,
  createLimitOverride: {
    input: (form, reason) => ({
      body: {
        ...textsIn(form, 'limit', 'value', 'issuer', 'tenant'),
        reason,
        requests: numberIn(form, 'requests'),
        ...(form.get('expiresInSeconds') && {
          expiresInSeconds: numberIn(form, 'expiresInSeconds'),
        }),
      },
    }),
  },
  deleteLimitOverride: byId,
  resetLimit: { input: (form) => ({ body: textsIn(form, 'limit', 'value', 'issuer', 'tenant') }) },
  createApiKey: {
    input: (form) => ({
      body: {
        ...textsIn(form, 'name', 'subject', 'tenant', 'plan'),
        roles: wordsIn(form, 'roles'),
        scopes: wordsIn(form, 'scopes'),
        expiresInSeconds: daysIn(form),
      },
    }),
    shows: secretPage,
  },
  rotateApiKey: {
    input: (form) => ({
      params: idOf(form),
      body: { graceSeconds: numberIn(form, 'graceSeconds') },
    }),
    shows: secretPage,
  },
  expireApiKey: {
    call: 'updateApiKey',
    input: (form) => ({
      params: idOf(form),
      body: { expiresInSeconds: daysIn(form) ?? null },
    }),
  },
  planApiKey: {
    call: 'updateApiKey',
    input: (form) => ({ params: idOf(form), body: { plan: form.get('plan') || null } }),
  },
  disableApiKey: byId,
  assignPlan: { input: (form) => ({ body: textsIn(form, 'by', 'value', 'issuer', 'plan') }) },
  removePlanAssignment: byId,
  writeRelation: { call: 'writeRelations', input: (form) => tupleChange(form, 'writes') },
  deleteRelation: { call: 'writeRelations', input: (form) => tupleChange(form, 'deletes') },
  approveMcpTool: { input: (form) => ({ body: textsIn(form, 'server', 'tool', 'hash') }) },
  withdrawMcpApproval: { input: (form) => ({ body: textsIn(form, 'server', 'tool') }) },
  createErasure: {
    input: (form) => ({ body: textsIn(form, 'subject', 'issuer', 'tenant') }),
    leadsTo: erasurePath,
  },
}

/** Runs an action. Its reason is in the audit event. */
export const ACT: PageDefinition = {
  method: 'POST',
  path: '/actions',
  id: 'act',
  changes: true,
  async show(desk) {
    const form = await desk.form()
    const name = form.get('action') ?? ''
    const action = Object.hasOwn(ACTIONS, name) ? ACTIONS[name] : undefined
    const back = form.get('back') ?? CONSOLE_PATH
    const reason = form.get('reason')?.trim() ?? ''
    if (action === undefined)
      throw inputRefused('body', '/action', 'must be an action of the console')
    if (!BACK.test(back)) throw inputRefused('body', '/back', 'must be a page of the console')
    const call = action.call ?? name
    const answer = await withForm(
      () => {
        if (reason === '') throw inputRefused('body', '/reason', 'must not be empty')
        desk.recordReason(reason)
        return unlessGone(() => desk.act(call, action.input(form, reason)), name, back)
      },
      // Only for a visitor who may make the call: the form has names of the policy.
      async (errors) => actionMistakes(name, form, errors, await choicesOf(desk, call)),
      absentOf(name),
    )
    const notice = noticeOf(name, answer, form, reason)
    if (action.shows !== undefined) return { ...action.shows(answer, back), notice }
    return desk.leadTo(action.leadsTo?.(answer) ?? back, notice)
  },
}

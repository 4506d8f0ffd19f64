/** The page of limits, bans and revocations. */
import { html } from 'hono/html'
import * as z from 'zod/mini'
import { actionForm, banEnd, overrideEnd, revocationEnd } from './action-forms.ts'
import { type ConsolePage, type Markup, pathTo, table, when } from './layout.ts'
import { authorOf, card, numberOf } from './markup.ts'
import type { Desk, PageDefinition } from './page.ts'

const record = {
  id: z.string(),
  value: z.string(),
  tenant: z.nullable(z.string()),
  createdAt: z.string(),
  createdBy: z.string(),
  createdByName: z.optional(z.string()),
  expiresAt: z.nullable(z.string()),
}
const cursor = z.optional(z.string())
const limitPage = z.object({
  limits: z.array(
    z.object({
      name: z.string(),
      limit: z.number(),
      windowSeconds: z.number(),
      by: z.string(),
      mode: z.string(),
      onUnavailable: z.string(),
    }),
  ),
  overrides: z.array(
    z.object({
      ...record,
      limit: z.string(),
      requests: z.number(),
      reason: z.optional(z.string()),
    }),
  ),
  cursor,
})
const banPage = z.object({
  bans: z.array(
    z.object({ ...record, kind: z.string(), reason: z.nullable(z.string()), mode: z.string() }),
  ),
  cursor,
})
const revocationPage = z.object({
  revocations: z.array(z.object({ ...record, kind: z.string(), reason: z.nullable(z.string()) })),
  cursor,
})

const PATH = '/limits'
const ITEMS = '50'

export const LIMITS: PageDefinition = {
  path: PATH,
  id: 'limits',
  name: 'Limits and bans',
  needs: ['listLimits', 'listBans', 'listRevocations'],
  async show(desk): Promise<ConsolePage> {
    const limits = await desk.read('listLimits', limitPage, pageOf(desk, 'overrides'))
    const bans = await desk.read('listBans', banPage, pageOf(desk, 'bans'))
    const revocations = await desk.read(
      'listRevocations',
      revocationPage,
      pageOf(desk, 'revocations'),
    )
    return {
      title: 'Limits, bans and revocations',
      at: 'Limits and bans',
      content: html`${limits === undefined ? lacking('limits:list') : limitCards(desk, limits)}${
        bans === undefined ? lacking('bans:list') : banCard(desk, bans)
      }${revocations === undefined ? lacking('revocations:list') : revocationCard(desk, revocations)}`,
    }
  },
}

const lacking = (permission: string): Markup =>
  html`<p class="note">Your role lacks portcullis:${permission}.</p>`

/** Each list has its own cursor in the query of the page. */
const pageOf = ({ query }: Desk, list: string) => ({
  query: { limit: ITEMS, ...(query[list] !== undefined && { cursor: query[list] }) },
})

const olderThan = ({ query }: Desk, list: string, next: string | undefined): Markup | '' =>
  next === undefined
    ? ''
    : html`<p><a href="${pathTo(PATH, { ...query, [list]: next })}">Older ${list}</a></p>`

/** Returns the window of a limit. Empty: the policy has the limit no more. */
export function windowOf(
  limits: readonly { readonly name: string; readonly windowSeconds: number }[],
  name: string,
): string {
  const found = limits.find((limit) => limit.name === name)
  return found === undefined ? '' : `${found.windowSeconds} s`
}

export const endOf = (expiresAt: string | null) =>
  expiresAt === null ? 'until removed' : when(expiresAt)

function limitCards(desk: Desk, { limits, overrides, cursor }: z.infer<typeof limitPage>): Markup {
  const back = pathTo(PATH)
  return html`${card(
    'Limits of the policy',
    table(
      'Limits of the policy',
      ['Limit', 'Requests', 'Seconds', 'Counts by', 'Without Redis', 'Mode'],
      limits.map(({ name, limit, windowSeconds, by, onUnavailable, mode }) => [
        name,
        numberOf(limit),
        windowSeconds,
        by,
        onUnavailable,
        mode,
      ]),
    ),
  )}${card(
    'Limits of single callers',
    html`${table(
      'Limits of single callers',
      ['Since (UTC)', 'Limit', 'Caller', 'Requests', 'Window', 'Until (UTC)', 'Reason', 'By', ''],
      overrides.map((each) => [
        when(each.createdAt),
        each.limit,
        each.value,
        numberOf(each.requests),
        windowOf(limits, each.limit),
        endOf(each.expiresAt),
        each.reason ?? '',
        authorOf(each),
        overrideEnd(each, back),
      ]),
    )}${olderThan(desk, 'overrides', cursor)}${
      desk.may('createLimitOverride')
        ? actionForm({
            action: 'createLimitOverride',
            back,
            choices: { limits },
            note: html`<p class="note">It replaces the number that the caller has of the same limit.</p>`,
          })
        : ''
    }${
      desk.may('resetLimit') ? actionForm({ action: 'resetLimit', back, choices: { limits } }) : ''
    }`,
  )}`
}

function banCard(desk: Desk, { bans, cursor }: z.infer<typeof banPage>): Markup {
  const back = pathTo(PATH)
  return card(
    'Bans',
    html`${table(
      'Bans',
      ['Since (UTC)', 'Kind', 'Value', 'Until (UTC)', 'Reason', 'By', ''],
      bans.map((ban) => [
        when(ban.createdAt),
        ban.mode === 'observe' ? `${ban.kind} (observed)` : ban.kind,
        ban.value,
        endOf(ban.expiresAt),
        ban.reason ?? '',
        authorOf(ban),
        banEnd(ban, back),
      ]),
    )}${olderThan(desk, 'bans', cursor)}${
      desk.may('createBan') ? actionForm({ action: 'createBan', back }) : ''
    }`,
  )
}

function revocationCard(
  desk: Desk,
  { revocations, cursor }: z.infer<typeof revocationPage>,
): Markup {
  const back = pathTo(PATH)
  return card(
    'Revocations',
    html`${table(
      'Revocations',
      ['Since (UTC)', 'Kind', 'Value', 'Reason', 'By', ''],
      revocations.map((each) => [
        when(each.createdAt),
        each.kind,
        each.value,
        each.reason ?? '',
        authorOf(each),
        revocationEnd(each, back),
      ]),
    )}${olderThan(desk, 'revocations', cursor)}${
      desk.may('createRevocation') ? actionForm({ action: 'createRevocation', back }) : ''
    }`,
  )
}

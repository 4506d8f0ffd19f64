/** The page of signing keys and issuers. */
import { html } from 'hono/html'
import * as z from 'zod/mini'
import { issuersView } from './issuers.ts'
import { type ConsolePage, table, when } from './layout.ts'
import { card } from './markup.ts'
import { unreadable } from './mistakes.ts'
import type { PageDefinition } from './page.ts'

const keyPage = z.object({
  keys: z.array(
    z.object({
      kid: z.string(),
      alg: z.string(),
      state: z.string(),
      notBefore: z.optional(z.string()),
      expiresAt: z.optional(z.string()),
    }),
  ),
})

const DAY_MS = 86_400_000
const daysBetween = (fromMs: number, toMs: number): string => {
  const days = Math.floor((toMs - fromMs) / DAY_MS)
  return days === 1 ? '1 day' : `${days} days`
}

export const KEYS: PageDefinition = {
  path: '/keys',
  id: 'keys',
  name: 'Keys and issuers',
  needs: ['listKeys', 'readIssuers'],
  async show(desk): Promise<ConsolePage> {
    const listed = await desk.read('listKeys', keyPage)
    const issuers = await desk.read('readIssuers', issuersView)
    if (listed === undefined && issuers === undefined)
      throw unreadable(desk, 'listKeys', 'portcullis:keys:list')
    return {
      title: 'Keys and issuers',
      at: 'Keys and issuers',
      content: html`${listed === undefined ? '' : card('Signing keys of the gateway', keyTable(listed, desk.nowMs))}${
        issuers === undefined ? '' : card('Issuers', issuerTable(issuers))
      }`,
    }
  },
}

const keyTable = ({ keys }: z.infer<typeof keyPage>, nowMs: number) =>
  html`${table(
    'Signing keys',
    ['Key', 'Algorithm', 'State', 'Age', 'Signs from (UTC)', 'Ends (UTC)'],
    keys.map(({ kid, alg, state, notBefore, expiresAt }) => [
      kid,
      alg,
      state,
      notBefore === undefined || Date.parse(notBefore) > nowMs
        ? ''
        : daysBetween(Date.parse(notBefore), nowMs),
      notBefore === undefined ? '' : when(notBefore),
      expiresAt === undefined ? 'never' : when(expiresAt),
    ]),
    'The gateway has no signing keys.',
  )}<p>${rotationOf(keys, nowMs)}</p>`

function rotationOf(keys: z.infer<typeof keyPage>['keys'], nowMs: number): string {
  const next = keys.find(({ state }) => state === 'next')
  if (next?.notBefore !== undefined)
    return `The next rotation is in ${daysBetween(nowMs, Date.parse(next.notBefore))}: ${next.kid} signs then.`
  const active = keys.find(({ state }) => state === 'active')
  if (active?.expiresAt !== undefined)
    return `No next key is configured, and ${active.kid} ends in ${daysBetween(nowMs, Date.parse(active.expiresAt))}.`
  return 'No rotation is configured.'
}

const issuerTable = ({ issuers }: z.infer<typeof issuersView>) =>
  html`${table(
    'Issuers',
    ['Issuer', 'Keys', 'Last fetch (UTC)', 'State'],
    issuers.map(({ issuer, keys, fetchedAt, state }) => [
      issuer,
      keys ?? '',
      fetchedAt === null ? '' : when(fetchedAt),
      state,
    ]),
  )}<p>Each isolate fetches the keys of an issuer when it needs them. The times are those of the isolate that answered this page.</p>`

/** What the console says of an action on the next page, and if Redis does not store or return it. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { startConsole } from './gateway.ts'

let gateway: Awaited<ReturnType<typeof startConsole>>
let operator: string
beforeAll(async () => {
  gateway = await startConsole()
})
afterAll(() => gateway?.close())
beforeEach(async () => {
  operator = await gateway.cookieOf({ roles: ['operator'] })
})

const back = '/-/console/limits'
const banOf = (value: string) => ({
  ...{ action: 'createBan', kind: 'subject', value, seconds: '600', back },
})

/** Sends a form, and returns the cookies of the browser after it. */
async function actAs(form: Record<string, string>) {
  const { status, headers, text } = await gateway.visit(operator, '/-/console/actions', { form })
  expect(status, text).toBe(303)
  const [notice = ''] = headers.getSetCookie()
  return { notice, cookies: `${operator}; ${notice.split(';', 1)}` }
}

const NOTICE = /<div class="card done" role="status">(.*?)<\/div>/s

test('the next page says once what an action has done, only to the session of the action', async () => {
  const form = banOf('noisy')
  const { notice, cookies } = await actAs({ ...form, reason: 'floods the API' })
  expect(notice).toMatch(
    /^__Secure-[\w-]+=[\w-]{22}; Path=\/-\/console; Secure; HttpOnly; SameSite=Strict; Max-Age=60$/,
  )
  const shown = await gateway.visit(cookies, back)
  expect(NOTICE.exec(shown.text)?.[1]).toMatch(
    /^<p>Banned: subject noisy, until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\.<\/p><p>Reason: floods the API<\/p>$/,
  )
  expect(shown.text).toContain('<title>Done: ')
  expect(shown.headers.getSetCookie()).toEqual([expect.stringContaining('Max-Age=0')])
  expect((await gateway.visit(cookies, back)).text).not.toMatch(NOTICE)

  for (const person of [{ subject: 'oscar' }, { subject: 'olga' }]) {
    const next = await actAs({ ...form, reason: 'floods the API' })
    const other = await gateway.cookieOf({ ...person, roles: ['operator'] })
    const [, name] = next.cookies.split('; ')
    const { status, text } = await gateway.visit(`${other}; ${name}`, back)
    expect(status).toBe(200)
    expect(text, `another session of ${person.subject}`).not.toMatch(NOTICE)
  }
  const forged = `${operator}; __Secure-portcullis-notice=${'A'.repeat(22)}`
  expect((await gateway.visit(forged, `${back}?notice=Done&done=createBan`)).text).not.toMatch(
    NOTICE,
  )
})

test('a notice that Redis does not store is on the page of the action, which is done', async () => {
  let refused = 0
  gateway.redis.setAnswering((commands) => {
    if (!/"SET","pc:[^"]*notice/.test(commands)) return true
    refused += 1
    return false
  })
  const form = { ...banOf('forgotten'), reason: 'floods the API' }
  const { status, headers, text } = await gateway.visit(operator, '/-/console/actions', { form })
  expect(refused).toBeGreaterThan(0)
  expect([status, headers.getSetCookie()], text).toEqual([200, []])
  expect(NOTICE.exec(text)?.[1]).toMatch(/^<p>Banned: subject forgotten, until .*<p>Reason: floods/)
  expect(text).toContain('<title>Done')
  expect(text).toContain(`<a href="${back}">Back</a>`)
  expect(gateway.events.at(-1)).toMatchObject({
    ...{ decision: 'allow', change: { action: 'ban.create' } },
    fields: { reason: 'floods the API' },
  })
  gateway.redis.setAnswering(true)
  const next = await gateway.visit(operator, back)
  expect(next.text).toContain('forgotten')
  expect(next.text).not.toMatch(NOTICE)
})

test('a page is shown without its notice if Redis does not return that', async () => {
  const { cookies } = await actAs({ ...banOf('unread'), reason: 'floods the API' })
  let refused = 0
  gateway.redis.setAnswering((commands) => {
    if (!commands.includes('"GETDEL"')) return true
    refused += 1
    return false
  })
  const { status, text } = await gateway.visit(cookies, back)
  expect(refused).toBeGreaterThan(0)
  expect(status, text).toBe(200)
  expect(text).toContain('unread')
  expect(text).not.toMatch(NOTICE)
})

test('a stored notice of another shape is not shown, and the page is', async () => {
  for (const stored of ['null', '[["olga"],{}]', 'not JSON']) {
    const { cookies } = await actAs({ ...banOf('odd'), reason: 'x' })
    const name = /-notice=([\w-]+)$/.exec(cookies)?.[1]
    expect(await gateway.redis.direct.set(`pc:notice:${name}`, stored, 'XX')).toBe('OK')
    const { status, text } = await gateway.visit(cookies, back)
    expect(status, text).toBe(200)
    expect(text).toContain('odd')
    expect(text).not.toMatch(NOTICE)
  }
})

/** Checks an app that guards its own routes. Its options are in its code, so nothing is known about its issuers here. */
import type { Values } from '../deploy/values.ts'
import { type Finding, mistake, notChecked, ok, warning } from './finding.ts'
import { jsonIn, request } from './request.ts'

const APP = 'app'

const OPTIONS = notChecked(
  'options',
  'the options of an app are in its code: issuers, roles and limits',
  'Its first request names every mistake in its log; `npx portcullis idp doctor` examines tokens.',
)

const LOG = 'Read the log of the app with `npx wrangler tail`: it names every mistake.'

interface AppOptions {
  readonly url: string | undefined
  readonly values: Values
  readonly redisFindings: (values: Values) => Promise<readonly Finding[]>
}

/** Returns the findings about Redis, if its variables have values here, and about the running app at `url`. */
export async function checkApp({ url, values, redisFindings }: AppOptions): Promise<Finding[]> {
  const hasRedis = values.UPSTASH_REDIS_REST_URL !== undefined
  const [redis, running] = await Promise.all([
    hasRedis ? redisFindings(values) : [],
    url === undefined ? [] : answerFindings(url),
  ])
  return [...redis, ...running, OPTIONS]
}

/** A request without a token: the guard answers for itself. */
async function answerFindings(url: string): Promise<readonly Finding[]> {
  const answer = await request(`${url}/`)
  if (typeof answer === 'string')
    return [mistake(APP, `${url} ${answer}`, 'Check the address, and deploy the app.')]
  const { status, text } = answer
  const { code } = (jsonIn(text) ?? {}) as { readonly code?: unknown }
  const seen = `${url}/ without a token: status ${status}${typeof code === 'string' ? `, ${code}` : ''}`
  if (status >= 500) return [mistake(APP, seen, LOG)]
  if (status === 401) return [ok(APP, seen)]
  return [
    warning(APP, seen, 'Check that this path may be open: the guard did not refuse the request.'),
  ]
}

/** The requests that `npm start` suggests, ready to paste. */
import { type Signer, signAccessToken } from './access-token.ts'
import { defaultPublicUrl } from './settings.ts'

const TTL_SECONDS = 3_600

/**
 * Three `curl` lines, each under a comment that begins with the status it gets, and one of the
 * command line. `shipped` says whether the gateway has the routes of the policy that ships; `url`
 * is where it listens.
 */
export async function examples(url: string, signer: Signer, shipped: boolean): Promise<string> {
  const token = await signAccessToken(
    { subject: 'alice', client: 'dev', roles: ['reader'], ttlSeconds: TTL_SECONDS },
    signer,
  )
  const bearer = `-H 'Authorization: Bearer ${token}'`
  const requests = shipped
    ? [
        ['200: alice is a reader', `${bearer} ${url}/orders`],
        ['401: no token', `${url}/orders`],
        [
          '403: a reader may not write',
          `${bearer} -H 'Content-Type: application/json' -d '{"item":"book","quantity":1}' ${url}/orders`,
        ],
      ]
    : [
        ['200: ready', `${url}/-/readyz`],
        ['200: the keys that sign', `${url}/.well-known/jwks.json`],
        ["404, or your route's answer to alice, a reader", `${bearer} ${url}/`],
      ]
  const lines = requests.map(([comment, request]) => `# ${comment}\ncurl -i ${request}`)
  const where = url === defaultPublicUrl() ? '' : ` --url ${url}`
  lines.push(`# who was refused, and why\nnpx portcullis audit query --decision deny${where}`)
  return lines.join('\n')
}

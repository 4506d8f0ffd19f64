/** The example requests that `npm start` prints, ready to paste. */
import { type Signer, signAccessToken } from './access-token.ts'
import { DEMO_ORDER } from './demo-relations.ts'
import { defaultPublicUrl } from './settings.ts'

const TTL_SECONDS = 3_600

export interface ExampleOptions {
  /** Whether the gateway uses the default policy and its routes. */
  readonly isShipped: boolean
  /** Whether the tuples of the demo exist. */
  readonly hasRelations: boolean
  /** Whether the gateway has the features that the command line uses. */
  readonly hasOperators: boolean
}

/**
 * Returns `curl` commands, each below a comment that begins with the expected status, and an
 * example of the command line. `url` is the address of the gateway.
 */
export async function examples(
  url: string,
  signer: Signer,
  { isShipped, hasRelations, hasOperators }: ExampleOptions,
): Promise<string> {
  const bearer = await bearerOf('alice', signer)
  const requests = isShipped
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
        ['200: the public signing keys', `${url}/.well-known/jwks.json`],
        ['404, or the response of your route to alice, a reader', `${bearer} ${url}/`],
      ]
  if (hasRelations) {
    const invoice = `${url}/orders/${DEMO_ORDER}/invoice`
    requests.push(
      ['200: alice is a viewer through her organization, five levels up', `${bearer} ${invoice}`],
      [
        '403: mallory is a reader without a relation to this order',
        `${await bearerOf('mallory', signer)} ${invoice}`,
      ],
    )
  }
  const lines = requests.map(([comment, request]) => `# ${comment}\ncurl -i ${request}`)
  const where = url === defaultPublicUrl() ? '' : ` --url ${url}`
  if (hasOperators)
    lines.push(
      `# refused requests and their reasons\nnpx portcullis audit query --decision deny${where}`,
    )
  return lines.join('\n')
}

async function bearerOf(subject: string, signer: Signer): Promise<string> {
  const reader = { subject, client: 'dev', roles: ['reader'], ttlSeconds: TTL_SECONDS }
  return `-H 'Authorization: Bearer ${await signAccessToken(reader, signer)}'`
}

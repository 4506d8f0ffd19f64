/** What serverless platforms call a function with, reduced to what adapters and guards read. */

interface Sent {
  readonly method?: string
  readonly path?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** Undefined: 192.0.2.7. */
  readonly address?: string
}

const ADDRESS = '192.0.2.7'
const HOST = 'notes.test'

/** An event of a function URL or an HTTP API of AWS (payload version 2.0). */
export const lambdaEvent = ({ method = 'GET', path = '/', headers, body, address }: Sent) => ({
  version: '2.0',
  rawPath: path,
  rawQueryString: '',
  headers: { host: HOST, ...lowerCased(headers) },
  body: body ?? null,
  isBase64Encoded: false,
  requestContext: {
    domainName: HOST,
    requestId: 'r1',
    http: { method, path, protocol: 'HTTP/1.1', sourceIp: address ?? ADDRESS, userAgent: '' },
  },
})

/** An event of a REST API of AWS (payload version 1.0). */
export const restApiEvent = ({ method = 'GET', path = '/', headers, body, address }: Sent) => ({
  version: '1.0',
  resource: '/{proxy+}',
  path,
  httpMethod: method,
  headers: { Host: HOST, ...headers },
  multiValueHeaders: {},
  queryStringParameters: null,
  multiValueQueryStringParameters: null,
  body: body ?? null,
  isBase64Encoded: false,
  requestContext: {
    domainName: HOST,
    requestId: 'r1',
    identity: { sourceIp: address ?? ADDRESS, userAgent: '' },
  },
})

/** An event of an Application Load Balancer. */
export const balancerEvent = ({ method = 'GET', path = '/', headers, body }: Sent) => ({
  httpMethod: method,
  path,
  queryStringParameters: {},
  headers: { host: HOST, ...lowerCased(headers) },
  body: body ?? '',
  isBase64Encoded: false,
  requestContext: {
    elb: { targetGroupArn: 'arn:aws:elasticloadbalancing:eu-west-1:1:targetgroup/n/1' },
  },
})

/** An event of CloudFront for Lambda@Edge. */
export const cloudFrontEvent = ({ method = 'GET', path = '/', headers, body, address }: Sent) => ({
  Records: [
    {
      cf: {
        config: {
          distributionDomainName: HOST,
          distributionId: 'D',
          eventType: 'viewer-request',
          requestId: 'r1',
        },
        request: {
          clientIp: address ?? ADDRESS,
          method,
          uri: path,
          querystring: '',
          headers: Object.fromEntries(
            Object.entries({ host: HOST, ...lowerCased(headers) }).map(([key, value]) => [
              key,
              [{ key, value }],
            ]),
          ),
          ...(body !== undefined && {
            body: {
              action: 'read-only',
              encoding: 'base64',
              inputTruncated: false,
              data: Buffer.from(body).toString('base64'),
            },
          }),
        },
      },
    },
  ],
})

/** The context of a function of Cloudflare Pages. */
export const pagesContext = ({
  method = 'GET',
  path = '/',
  headers,
  body,
  env,
}: Sent & { readonly env: object }) => ({
  request: new Request(`https://${HOST}${path}`, {
    method,
    ...(headers && { headers }),
    ...(body !== undefined && { body }),
  }),
  env,
  waitUntil() {},
  passThroughOnException() {},
  next: async () => new Response('not found', { status: 404 }),
  functionPath: '/[[path]]',
  params: {},
  data: {},
})

const lowerCased = (headers: Readonly<Record<string, string>> = {}) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))

/** The calls as commands and as code, for the page of the documentation. The reader replaces the names in capitals. */
import type { SecurityScheme } from '../../routes/operation.ts'
import type { DocumentedOperation, OpenApiDocument } from './document.ts'

const FORM = 'application/x-www-form-urlencoded'

export interface ExampleCall {
  readonly document: OpenApiDocument
  readonly path: string
  /** In lower case. */
  readonly method: string
  readonly operation: DocumentedOperation
}

/** The first credential that the call accepts. */
const schemeOf = ({ document, operation }: ExampleCall): SecurityScheme | undefined => {
  const [name = ''] = operation.security.flatMap((one) => Object.keys(one))
  return document.components.securitySchemes[name]
}

const bodyOf = ({ operation }: ExampleCall): readonly [string, object] | undefined => {
  const [body] = Object.entries(operation.requestBody?.content ?? {})
  return body && [body[0], body[1].example ?? {}]
}

/** Renders a call as a command. */
export function formatCurl(call: ExampleCall): string {
  const { path, method } = call
  const verb = method === 'get' ? '' : ` -X ${method.toUpperCase()}`
  const lines = [`curl${verb} "$PORTCULLIS_URL${path}"`, ...credentialOption(schemeOf(call))]
  const [mediaType, example = {}] = bodyOf(call) ?? []
  if (mediaType === FORM)
    lines.push(...Object.entries(example).map(([name, value]) => `-d '${name}=${value}'`))
  else if (mediaType !== undefined)
    lines.push(`-H 'Content-Type: ${mediaType}'`, `-d '${JSON.stringify(example)}'`)
  return lines.join(' \\\n  ')
}

function credentialOption(scheme: SecurityScheme | undefined): readonly string[] {
  if (scheme === undefined) return []
  if (scheme.type === 'apiKey')
    return [scheme.in === 'cookie' ? `-b "${scheme.name}=$TOKEN"` : `-H "${scheme.name}: $TOKEN"`]
  return scheme.scheme === 'basic'
    ? ['-u "$CLIENT_ID:$CLIENT_SECRET"']
    : ['-H "Authorization: Bearer $TOKEN"']
}

/** Renders a call as JavaScript. */
export function formatFetch(call: ExampleCall): string {
  const { path, method } = call
  const [mediaType, example = {}] = bodyOf(call) ?? []
  const credential = credentialHeader(schemeOf(call))
  const isForm = mediaType === FORM
  // `URLSearchParams` sets the type itself.
  const type = mediaType !== undefined && !isForm ? [`'Content-Type': '${mediaType}'`] : []
  const headers = [...credential, ...type]
  const json = JSON.stringify(example)
  const options = [
    ...(method === 'get' ? [] : [`method: '${method.toUpperCase()}'`]),
    ...(headers.length === 0 ? [] : [`headers: {\n    ${headers.join(',\n    ')},\n  }`]),
    ...(mediaType === undefined
      ? []
      : [`body: ${isForm ? `new URLSearchParams(${json})` : `JSON.stringify(${json})`}`]),
  ]
  const second = options.length === 0 ? '' : `, {\n  ${options.join(',\n  ')},\n}`
  return `const response = await fetch(PORTCULLIS_URL + '${path}'${second})`
}

function credentialHeader(scheme: SecurityScheme | undefined): readonly string[] {
  if (scheme === undefined) return []
  if (scheme.type === 'apiKey')
    return scheme.in === 'cookie'
      ? [`Cookie: '${scheme.name}=' + TOKEN`]
      : [`'${scheme.name}': TOKEN`]
  return scheme.scheme === 'basic'
    ? ["Authorization: 'Basic ' + btoa(CLIENT_ID + ':' + CLIENT_SECRET)"]
    : ["Authorization: 'Bearer ' + TOKEN"]
}

/** Returns the commands that define the names in the examples, with a client of the gateway's token endpoint. */
export const tokenExample = (publicUrl: string): string =>
  `PORTCULLIS_URL=${publicUrl}
TOKEN=$(curl "$PORTCULLIS_URL/oauth/token" \\
  -u "$CLIENT_ID:$CLIENT_SECRET" \\
  -d 'grant_type=client_credentials' | sed 's/.*"access_token":"\\([^"]*\\).*/\\1/')`

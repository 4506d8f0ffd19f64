/** Checks GitHub as a provider of the sign-in: it has no metadata, so each endpoint is called once. */
import { GITHUB_API_HEADERS, githubEndpoints } from '../../src/features/sign-in/github-endpoints.ts'
import { request, shownUrl } from './request.ts'
import { type Client, type ClientMistake, clientMistake } from './token-endpoint.ts'

const ISSUER =
  'Write `issuer` as https://github.com, or as the URL of your GitHub Enterprise Server.'
const COMPARE =
  'Compare `id` in ISSUER_CLIENTS with the client id of the OAuth app, and `issuer` with the URL of GitHub.'
const API =
  'Set `apiUrl` in signIn to the API of this GitHub, such as https://github.example.com/api/v3.'

/** Statuses of an endpoint that demands an access token, or has had too many requests. */
const PROTECTED: readonly number[] = [401, 403, 429]

/** Returns the first mistake. Undefined: there is none. */
export async function githubMistake(
  client: Client,
  apiUrl: string | undefined,
  redirectUri: string,
): Promise<ClientMistake | undefined> {
  const { authorization, token, user, emails } = githubEndpoints(client.issuer, apiUrl)
  const found = await Promise.all([
    pageMistake(authorization, client.id),
    tokenMistake(token, client, redirectUri),
    apiMistake(user),
    apiMistake(emails),
  ])
  return found.find((one) => one !== undefined)
}

/** GitHub redirects to its login, and has no page for a client that it does not know. */
async function pageMistake(url: string, clientId: string): Promise<ClientMistake | undefined> {
  const answer = await request(`${url}?${new URLSearchParams({ client_id: clientId })}`)
  if (typeof answer === 'string') return { seen: `${url} ${answer}`, remedy: ISSUER }
  if (answer.status < 400) return undefined
  return { seen: `${url} responds with status ${answer.status}`, remedy: COMPARE }
}

async function tokenMistake(
  url: string,
  client: Client,
  redirectUri: string,
): Promise<ClientMistake | undefined> {
  const { mistake, answer, error } = await clientMistake(url, client, redirectUri)
  if (mistake !== undefined) return mistake
  if (typeof answer === 'string') return { seen: `${url} ${answer}`, remedy: ISSUER }
  // GitHub sends errors with status 200.
  if (answer.status !== 200)
    return { seen: `${url} responds with status ${answer.status}`, remedy: COMPARE }
  if (error === undefined)
    return { seen: `${url} responds with no error to a code that does not exist`, remedy: ISSUER }
  if (error === 'bad_verification_code') return undefined
  return { seen: `${url} responds with the error ${error}`, remedy: COMPARE }
}

/** Only a user has an access token, so that none is sent. */
async function apiMistake(url: string): Promise<ClientMistake | undefined> {
  const answer = await request(url, { headers: GITHUB_API_HEADERS })
  const shown = shownUrl(url)
  if (typeof answer === 'string') return { seen: `${shown} ${answer}`, remedy: API }
  if (PROTECTED.includes(answer.status)) return undefined
  const without = answer.status < 400 ? ' without an access token' : ''
  return { seen: `${shown} responds with status ${answer.status}${without}`, remedy: API }
}

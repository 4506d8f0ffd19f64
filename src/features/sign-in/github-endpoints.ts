/** The endpoints of GitHub, which publishes no metadata. */

/** The issuer of users of github.com. A GitHub Enterprise Server has its own URL. */
const GITHUB = 'https://github.com'
const GITHUB_API = 'https://api.github.com'

/** Returns the endpoints of an issuer. `apiUrl` is the API in the settings of the sign-in. */
export function githubEndpoints(
  issuer: string,
  apiUrl = issuer === GITHUB ? GITHUB_API : `${issuer}/api/v3`,
) {
  return {
    authorization: `${issuer}/login/oauth/authorize`,
    token: `${issuer}/login/oauth/access_token`,
    /** The account of the user, and its addresses. */
    user: `${apiUrl}/user`,
    emails: `${apiUrl}/user/emails`,
  }
}

/** What the API demands of each request. */
export const GITHUB_API_HEADERS = {
  accept: 'application/vnd.github+json',
  'user-agent': 'portcullis',
  'x-github-api-version': '2022-11-28',
}

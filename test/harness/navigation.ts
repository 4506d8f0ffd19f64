/** The request of a browser that opens a page. `fetch` always sends its own `Sec-Fetch-Mode`. */
import { request } from 'node:http'

const HEADERS = { accept: 'text/html', 'sec-fetch-mode': 'navigate' }

/** Opens a page without cookies, and does not follow a redirect. */
export const navigate = (url: string) =>
  new Promise<{ readonly status: number | undefined; readonly location: string | undefined }>(
    (resolve, reject) => {
      request(url, { headers: HEADERS }, (response) => {
        response.resume()
        resolve({ status: response.statusCode, location: response.headers.location })
      })
        .on('error', reject)
        .end()
    },
  )

#!/usr/bin/env node
/** A browser without a window: follows the redirects of one page, with cookies. */
const cookies = new Map()
let url = process.argv[2]
for (let count = 0; count < 12; count += 1) {
  const cookie = [...cookies].map((pair) => pair.join('=')).join('; ')
  const response = await fetch(url, { headers: { cookie }, redirect: 'manual' })
  await response.text()
  for (const header of response.headers.getSetCookie()) {
    const [, name, value] = /^([^=]+)=([^;]*)/.exec(header) ?? []
    cookies.set(name, value)
  }
  const location = response.headers.get('location')
  if (location === null) break
  url = new URL(location, url).href
}

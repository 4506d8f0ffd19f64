/** The style and the script of the page of the documentation. */

export const STYLE = `
:root { color-scheme: light dark; --line: color-mix(in srgb, currentColor 22%, transparent);
  --soft: color-mix(in srgb, currentColor 6%, transparent); --link: light-dark(#0b57d0, #a8c7fa); }
* { box-sizing: border-box; }
html { scroll-padding-top: 7rem; background: Canvas; color: CanvasText; }
body { background: Canvas; font: 1rem/1.55 system-ui, sans-serif; max-width: 76rem; margin: 0 auto; padding: 1rem 1.25rem 4rem;
  overflow-wrap: anywhere; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0.5rem 0; }
h2 { font-size: 1.25rem; margin: 2rem 0 0.5rem; }
h3 { display: inline; font-size: 1rem; font-weight: 400; }
h4 { font-size: 0.9375rem; margin: 1.25rem 0 0.25rem; }
code, pre { font: 0.875em/1.5 ui-monospace, monospace; }
pre { overflow-x: auto; overflow-wrap: normal; padding: 0.75rem; margin: 0.25rem 0; background: var(--soft);
  border: 1px solid var(--line); border-radius: 6px; }
a { color: var(--link); }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
nav ul { list-style: none; display: flex; flex-wrap: wrap; gap: 0 1rem; margin: 0; padding: 0; }
nav a { display: inline-block; padding: 0.3rem 0; }
.tools { position: sticky; top: 0; z-index: 1; display: flex; flex-wrap: wrap; align-items: center; gap: 0.5rem 1rem;
  padding: 0.75rem 0; background: Canvas; border-bottom: 1px solid var(--line); }
.tools label { display: flex; align-items: center; gap: 0.5rem; }
.tools [type=search] { font: inherit; width: min(22rem, 60vw); padding: 0.4rem 0.6rem; border: 1px solid GrayText;
  border-radius: 6px; }
fieldset { display: flex; gap: 0.75rem; border: 0; margin: 0; padding: 0; }
legend { float: left; margin-inline-end: 0.75rem; padding: 0; }
.call { border: 1px solid var(--line); border-inline-start: 5px solid GrayText; border-radius: 6px; margin: 0.5rem 0; }
.get { border-inline-start-color: #2f7d4f; } .post { border-inline-start-color: #2d6cc0; }
.delete { border-inline-start-color: #c23b3b; }
summary { cursor: pointer; padding: 0.6rem 0.75rem; }
.call > summary { display: block; }
.call > summary h3 code { display: block; font-weight: 600; }
.inside { scroll-margin-top: 4.5rem; padding: 0 0.75rem 0.75rem; border-top: 1px solid var(--line); }
dl { margin: 0.25rem 0; }
dl div { padding: 0.35rem 0; border-top: 1px solid var(--line); }
dd { margin: 0; }
small { color: color-mix(in srgb, CanvasText 78%, Canvas); }
[hidden], .group:not(:has(.call:not([hidden]))) { display: none !important; }
body:has(#fetch:checked) .curl, body:not(:has(#fetch:checked)) .fetch { display: none; }
@media (min-width: 60rem) {
  html { scroll-padding-top: 4.5rem; }
  .call > summary h3 code { display: inline; margin-inline-end: 0.75rem; }
  .columns { display: grid; grid-template-columns: 12rem minmax(0, 1fr); gap: 2.5rem; align-items: start; }
  nav { position: sticky; top: 4.5rem; max-height: calc(100vh - 6rem); overflow-y: auto; padding-top: 2rem; }
  nav ul { display: block; }
  dl div { display: grid; grid-template-columns: minmax(0, 2fr) minmax(0, 3fr); gap: 1rem; }
}
`

/**
 * Searches, and opens the call of the address. The page is complete without it. The end of a longer word does not
 * count, because its forms begin alike in every language: revoke, revoking, revocation.
 */
export const SCRIPT = `'use strict'
const search = document.querySelector('[type=search]')
const calls = [...document.querySelectorAll('.call')]
const texts = calls.map((call) => call.textContent.toLowerCase())
search.closest('label').hidden = false
function find() {
  const words = search.value.toLowerCase().split(/\\s+/).filter(Boolean)
    .map((word) => word.length < 6 ? word : word.slice(0, Math.max(4, word.length - 3)))
  let found = 0
  calls.forEach((call, at) => {
    call.hidden = !words.every((word) => texts[at].includes(word))
    if (!call.hidden) found += 1
  })
  document.querySelector('[role=status]').textContent = words[0] ? found + (found === 1 ? ' call' : ' calls') : ''
}
function reveal() {
  const call = document.getElementById(location.hash.slice(1))?.closest('details')
  if (call) call.open = true
}
search.addEventListener('input', find)
addEventListener('hashchange', reveal)
if (search.value) find()
reveal()
`

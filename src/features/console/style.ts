/** The style of the console. */

/** In a narrow box, each row of such a table is a block: the name of each column is above its value. */
const blocks = (tables: string): string => `
  ${tables} { display: block; } ${tables} tbody { display: block; }
  ${tables} thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  ${tables} tr { display: flex; flex-wrap: wrap; gap: 0.25rem 1.25rem; padding: 0.5rem 0; border-bottom: 1px solid var(--line); }
  ${tables} td { display: block; position: static; min-width: 0; max-width: 100%; padding: 0; border: 0; }
  ${tables} td:not([data-column]) { flex: 1 0 100%; } ${tables} td:empty { display: none; }
  ${tables} td[data-column]::before { content: attr(data-column); display: block; color: var(--soft); font-size: 0.8125rem; }`

export const STYLE = `
:root { color-scheme: light dark; --bg: #f7f8fa; --card: #fff; --text: #16202c; --soft: #51606f; --line: #d5dbe2;
  --accent: #0b57c2; --allow: #2f7d5b; --deny: #b3541e; --error: #b3261e; --on: #fff; }
@media (prefers-color-scheme: dark) { :root { --bg: #11161d; --card: #1a222c; --text: #e8edf2; --soft: #a9b6c3;
  --line: #34414f; --accent: #8ab8ff; --allow: #63c296; --deny: #f0a06b; --error: #ff8a80; --on: #10151b; } }
* { box-sizing: border-box; }
body { margin: 0; font: 1rem/1.5 system-ui, sans-serif; background: var(--bg); color: var(--text); }
a { color: var(--accent); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; border-radius: 2px; }
.skip { position: absolute; left: -100rem; }
.skip:focus { left: 1rem; top: 0.5rem; background: var(--card); padding: 0.5rem; }
header { display: flex; flex-wrap: wrap; align-items: center; gap: 0.25rem 0.75rem; padding: 0.5rem 1.25rem;
  background: var(--card); border-bottom: 1px solid var(--line); }
.brand { font-weight: 700; color: inherit; text-decoration: none; padding: 0.5rem 0; }
nav ul, .links { display: flex; flex-wrap: wrap; gap: 0.25rem; list-style: none; margin: 0; padding: 0; }
nav ul { gap: 0.125rem; font-size: 0.9375rem; }
nav a, .links a { display: block; padding: 0.5rem 0.75rem; border-radius: 6px; text-decoration: none; color: inherit; }
nav a { padding: 0.5rem; }
nav a:hover, .links a:hover { background: var(--bg); text-decoration: underline; }
nav a[aria-current], .links a[aria-current] { font-weight: 600; color: var(--accent); background: var(--bg); }
.who { margin: 0 0 0 auto; display: flex; flex-wrap: wrap; gap: 0.25rem 0.75rem; align-items: center; }
main { max-width: 84rem; margin: 0 auto; padding: 1rem 1.25rem 4rem; outline: none; }
h1 { font-size: 1.6rem; margin: 0.5rem 0 1rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 0 0 0.75rem; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 1rem 1.25rem;
  margin: 0 0 1rem; min-width: 0; container-type: inline-size; }
.grid { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); }
.grid > .card { margin: 0; }
.grid { margin: 0 0 1rem; }
.tiles { display: grid; gap: 0.75rem; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); margin: 0 0 1rem; }
.tiles > div { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 0.75rem 1rem; }
.tiles dt { color: var(--soft); font-size: 0.875rem; }
.tiles dd { margin: 0; font-size: 1.5rem; font-weight: 650; font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 0.9375rem; }
th { text-align: left; color: var(--soft); font-weight: 600; white-space: nowrap; }
th, td { padding: 0.4rem 0.75rem 0.4rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td { overflow-wrap: anywhere; min-width: 5.5rem; }
th:first-child, td:first-child { position: sticky; left: 0; background: var(--card); }
time, td summary { white-space: nowrap; font-variant-numeric: tabular-nums; }
dl.facts { display: grid; grid-template-columns: max-content 1fr; gap: 0.25rem 1rem; margin: 0; }
dl.facts dt { color: var(--soft); }
dl.facts dd { margin: 0; overflow-wrap: anywhere; }
.tag { display: inline-block; padding: 0 0.5rem; border: 1px solid currentColor; border-radius: 99px; font-size: 0.8125rem; }
.allow { color: var(--allow); } .deny { color: var(--deny); } .error { color: var(--error); }
.empty, .note { color: var(--soft); margin: 0 0 0.5rem; }
.answer { font-size: 1.125rem; font-weight: 600; margin: 0 0 1rem; overflow-wrap: anywhere; }
.done { border-left: 4px solid var(--allow); } .done p { margin: 0; overflow-wrap: anywhere; }
.mistakes { border-left: 4px solid var(--error); padding-left: 0.75rem; margin: 0 0 0.75rem; }
.mistake { color: var(--error); margin: 0.25rem 0 0; font-size: 0.875rem; }
[aria-invalid] { border: 2px solid var(--error); }
fieldset { border: 1px solid var(--line); border-radius: 6px; margin: 0; min-width: 0; }
legend { font-size: 0.875rem; color: var(--soft); } .choices { max-height: 12rem; overflow-y: auto; }
.choices label { display: flex; gap: 0.5rem; align-items: center; min-height: 2rem; color: inherit; }
.choices input { width: 1.25rem; min-height: 1.25rem; flex: none; }
.secret { font-family: ui-monospace, monospace; }
form.filter { display: grid; gap: 0.75rem; grid-template-columns: repeat(auto-fill, minmax(10rem, 1fr)); align-items: end;
  margin: 0 0 1rem; }
label { display: block; font-size: 0.875rem; color: var(--soft); }
input, select, textarea, button { font: inherit; min-height: 2.5rem; padding: 0.375rem 0.625rem; border-radius: 6px; width: 100%;
  border: 1px solid var(--soft); background: var(--card); color: var(--text); }
button { cursor: pointer; background: var(--accent); color: var(--on); border-color: var(--accent); font-weight: 600; }
button.danger { background: var(--error); border-color: var(--error); }
details { margin: 0 0 0.75rem; } summary { cursor: pointer; padding: 0.5rem 0; font-weight: 600; color: var(--accent); }
details form, form.stack { display: grid; gap: 0.75rem; max-width: 28rem; }
td details form { min-width: 14rem; white-space: normal; }
pre { overflow: auto; max-height: 24rem; font-size: 0.875rem; white-space: pre-wrap; overflow-wrap: anywhere; }
h3 { font-size: 1rem; margin: 0.75rem 0 0.25rem; } code { overflow-wrap: anywhere; }
svg { display: block; width: 100%; height: 8.5rem; }
svg .allow { fill: var(--allow); } svg .deny { fill: var(--deny); } svg .error { fill: var(--error); }
svg .slot { fill: transparent; } svg a:hover .slot, svg a:focus .slot { fill: var(--line); }
.axis { display: flex; justify-content: space-between; margin: 0.25rem 0 0; color: var(--soft); font-size: 0.8125rem; }
#live button { width: auto; margin-right: 0.5rem; }
.key { display: flex; gap: 1rem; margin: 0.5rem 0 0; font-size: 0.875rem; }
.mark { font-weight: 700; }
@media (max-width: 40rem) { header { padding: 0.25rem 0.75rem; } nav { order: 1; } nav a { padding: 0.25rem 0.5rem; }
  main { padding: 0.5rem 0.75rem 3rem; } .card { padding: 0.75rem; } .grid, .card { margin-bottom: 0.75rem; }
  th:first-child, td:first-child { position: static; }
  form.filter { grid-template-columns: repeat(auto-fill, minmax(8rem, 1fr)); }
  dl.facts { grid-template-columns: fit-content(45%) 1fr; } }
@container (max-width: 22rem) {${blocks('.small')} }
@container (max-width: 46rem) {${blocks('.medium')} }
@container (max-width: 58rem) {${blocks('.wide')} }
`

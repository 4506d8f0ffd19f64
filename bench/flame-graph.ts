/** A flame graph as an SVG document that needs nothing else: no script, no font, no network. */

/** One box, and what stands upon it. */
export interface Flame {
  readonly name: string
  /** Behind the name in the tooltip, such as the module. */
  readonly detail: string
  /** Boxes of the same colour belong together. */
  readonly colour: string
  /** Including what stands upon it; in any unit. */
  readonly value: number
  readonly children: readonly Flame[]
}

export interface FlameGraphOptions {
  readonly title: string
  readonly subtitle: string
  /** How much a value is, for tooltips. */
  readonly format: (value: number) => string
}

const WIDTH = 1_400
const SIDE = 10
const TOP = 64
const ROW = 18
const GAP = 1
/** Narrower boxes are left out: they cannot be seen. */
const MIN_BOX = 0.4
const CHARACTER = 6.3
const PADDING = 4
const MIN_CHARACTERS = 3

/** The root is the lowest row. Each box has a tooltip with its name, its value and its share. */
export function flameGraph(root: Flame, { title, subtitle, format }: FlameGraphOptions): string {
  const scale = (WIDTH - 2 * SIDE) / root.value
  const rows = heightOf(root, MIN_BOX / scale)
  const height = TOP + rows * ROW + SIDE
  const boxes: string[] = []
  place(root, SIDE, 0)
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="10.5">`,
    `<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>`,
    `<text x="${SIDE}" y="26" font-size="17" font-family="sans-serif">${escaped(title)}</text>`,
    `<text x="${SIDE}" y="46" font-size="12" font-family="sans-serif" fill="#555555">${escaped(subtitle)}</text>`,
    ...boxes,
    '</svg>',
    '',
  ].join('\n')

  function place(flame: Flame, x: number, row: number): void {
    const width = flame.value * scale
    if (width < MIN_BOX) return
    const y = TOP + (rows - 1 - row) * ROW
    boxes.push(boxOf(flame, { x, y, width }))
    let left = x
    for (const child of flame.children.toSorted((a, b) => b.value - a.value)) {
      place(child, left, row + 1)
      left += child.value * scale
    }
  }

  function boxOf(
    { name, detail, colour, value }: Flame,
    { x, y, width }: { readonly x: number; readonly y: number; readonly width: number },
  ): string {
    const share = ((value / root.value) * 100).toFixed(1)
    const told = detail === '' ? name : `${name} (${detail})`
    const room = Math.floor((width - 2 * PADDING) / CHARACTER)
    const label = name.length <= room ? name : `${name.slice(0, room - 1)}…`
    const text =
      room < MIN_CHARACTERS
        ? ''
        : `<text x="${(x + PADDING).toFixed(1)}" y="${y + 12.5}">${escaped(label)}</text>`
    return `<g><title>${escaped(`${told}: ${format(value)}, ${share} %`)}</title><rect x="${x.toFixed(1)}" y="${y}" width="${Math.max(width - GAP / 2, MIN_BOX).toFixed(1)}" height="${ROW - GAP}" rx="1" fill="${colour}"/>${text}</g>`
  }
}

/** How many rows there are with a box of at least this value. */
function heightOf({ value, children }: Flame, least: number): number {
  if (value < least) return 0
  return 1 + Math.max(0, ...children.map((child) => heightOf(child, least)))
}

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`)
}

/** Attributed samples as boxes of a flame graph: stages first, and upon each what it called. */
import type { Flame } from './flame-graph.ts'
import { type Attributed, OTHERS } from './profile-stages.ts'
import type { Frame } from './profile-tree.ts'

interface Growing {
  readonly frame: Frame
  value: number
  readonly upon: Map<string, Growing>
}

const ROOT_COLOUR = '#c9d3dc'
/** Of what is no stage. */
const OTHER_COLOUR = '#d5d5d5'
const HUES = 360
/** Of a circle, so that neighbours differ much. */
const GOLDEN_ANGLE = 137.5

/** Values are microseconds for each of so many requests. The platform's own functions are paler. */
export function flamesOf(attributed: readonly Attributed[], requests: number): Flame {
  const stages = new Map<string, Growing>()
  for (const { stage, path, micros } of attributed) {
    let growing = grown(stages, stage, { name: stage, module: '', line: -1 })
    growing.value += micros
    for (const frame of path) {
      growing = grown(growing.upon, `${frame.name} ${frame.module} ${frame.line}`, frame)
      growing.value += micros
    }
  }
  const children = [...stages].map(([stage, growing], index) =>
    flameOf(growing, (isOurs) => colourOf(stage, index, isOurs)),
  )
  const value = children.reduce((total, child) => total + child.value, 0)
  return { name: 'busy', detail: '', colour: ROOT_COLOUR, value, children }

  function flameOf({ frame, value: micros, upon }: Growing, colour: Colour): Flame {
    return {
      name: frame.name,
      detail: frame.module ?? 'platform',
      colour: colour(frame.module !== undefined),
      value: micros / requests,
      children: [...upon.values()].map((child) => flameOf(child, colour)),
    }
  }
}

type Colour = (isOurs: boolean) => string

function colourOf(stage: string, index: number, isOurs: boolean): string {
  if (OTHERS.some((other) => other === stage)) return OTHER_COLOUR
  return `hsl(${Math.round((index * GOLDEN_ANGLE) % HUES)} 62% ${isOurs ? 72 : 86}%)`
}

function grown(among: Map<string, Growing>, key: string, frame: Frame): Growing {
  const known = among.get(key) ?? { frame, value: 0, upon: new Map() }
  among.set(key, known)
  return known
}
